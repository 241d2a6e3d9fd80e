// Limits of readers: data that inflates too much, more columns than slots.
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "host/readers/reader.h"
#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Limits : public ReaderTest {
 protected:
  Limits() : ReaderTest("csv") {}

  // Checks that five samples of 4 MiB, compressed a thousandfold, are refused unless most_inflation allows them.
  void check_inflation(const std::string& type, const Bytes& before, const Bytes& sample, char filler, const Bytes& end,
                       Values given = {}) {
    type_ = type;
    Bytes content = before;
    for (int i = 0; i < 5; ++i) content += sample + Bytes((size_t{4} << 20) - sample.size() - end.size(), filler) + end;
    given = file(gzip(content), given, "bomb.gz");
    const Error error = refusal(given);
    EXPECT_EQ(error.code(), TN_BAD_DATA) << type << ": " << error.message();
    EXPECT_THAT(error.message(), AllOf(HasSubstr("bomb.gz: inflates to more than 100 times its size"),
                                       HasSubstr("if the data is sound, set most_inflation = 1032")));
    given["most_inflation"] = int64_t{1032};
    EXPECT_EQ(open(given)->samples(), 5) << type;
  }
};

TEST_F(Limits, WhatInflatesAThousandfold) {
  check_inflation("csv", "a\n", "1", ' ', "\n");
  check_inflation("libsvm", "", "1 1:1 #", 'x', "\n");
  check_inflation("text", "", "a", ' ', "\n");
  const Bytes dimensions = {0, 0, 0, 5, 0, 64, 0, 0};
  check_inflation("idx", Bytes{0, 0, 8, 2} + dimensions, "", '\0', "");
  const Bytes header = "{'descr': '|u1', 'fortran_order': False, 'shape': (5, 4194304), }\n";
  check_inflation("npy", "\x93NUMPY" + Bytes{1, 0, static_cast<char>(header.size()), 0} + header, "", '\0', "",
                  {{"names", Strings{"x"}}});
}

// The bound is far below the most that deflate can do: data of a ratio of some hundreds is refused, too.
TEST_F(Limits, WhatInflatesSomeHundredfold) {
  std::mt19937 random(3);
  Bytes content = "a\n";
  while (content.size() < size_t{80} << 10) content += std::to_string(random()) + "\n";
  for (int i = 0; i < 5; ++i) content += "1" + Bytes((size_t{4} << 20) - 2, ' ') + "\n";
  const Bytes packed = gzip(content);
  EXPECT_GT(content.size(), 200 * packed.size());
  EXPECT_LT(content.size(), 900 * packed.size());
  Values given = file(packed);
  EXPECT_THAT(refusal(given).message(), HasSubstr("inflates to more than 100 times its size"));
  given["most_inflation"] = int64_t{1032};
  EXPECT_EQ(refusal(given).code(), TN_OK);
}

// Up to 16 MiB a file may inflate by any factor.
TEST_F(Limits, LittleMayInflateFreely) {
  const Bytes content = "a\n" + Bytes("1") + Bytes((size_t{16} << 20) - 4, ' ') + "\n";
  const Values strict = {{"most_inflation", int64_t{1}}, {"most_line_bytes", int64_t{1} << 25}};
  EXPECT_EQ(open(file(gzip(content), strict))->samples(), 1);
  EXPECT_THAT(refusal(file(gzip(content + "2"), strict)).message(), HasSubstr("inflates to more than 1 times"));
  // The limit does not apply to files that are not compressed.
  EXPECT_EQ(open(file(content + "2", strict))->samples(), 2);
}

// Headers of huge samples, of which the files have none: no memory is allocated for one.
TEST_F(Limits, FilesWithoutSamplesTakeNoMemory) {
  const auto expect_none = [&](const std::string& type, const Bytes& content, Values more = {}) {
    ReaderSettings settings;
    settings.directory = folder_.string();
    const auto reader = open_reader(registry_.reader(type), file(content, std::move(more)),
                                    services_.tables(registry_.reader(type)), settings);
    EXPECT_EQ(reader->size(), 0);
    const auto memory = std::make_shared<CountingAllocator>();
    SampleBlock block(reader->slots(), memory);
    for (int pass = 0; pass < 3; ++pass) EXPECT_EQ(reader->next(block, 100), 0) << type;
    EXPECT_LT(memory->held, 64u) << type;
  };
  expect_none("idx", {0, 0, 8, 3, 0, 0, 0, 0, 0, 0x65, 0, 0, 0, 0, 5, 2});
  for (const char* shape : {"(0, 2147483647)", "(0, 65536, 65536)"}) {
    const Bytes header = "{'descr': '<f8', 'fortran_order': False, 'shape': " + Bytes(shape) + ", }\n";
    const Bytes length = {static_cast<char>(header.size()), 0};
    for (const bool packed : {false, true}) {
      const Bytes whole = "\x93NUMPY" + Bytes{1, 0} + length + header;
      expect_none("npy", packed ? gzip(whole) : whole, {{"names", Strings{"x"}}});
    }
  }
  expect_none("csv", "a,b\n", {{"columns", Strings{"x = *: f64"}}});
  expect_none("libsvm", "# nothing\n", {{"width", int64_t{1} << 40}});
}

TEST_F(Limits, AVocabularyInflatesNoMore) {
  type_ = "text";
  put("words.gz", gzip(Bytes(size_t{20} << 20, '\n')));
  Values given = file("a b\n");
  given["vocabulary"] = "words.gz";
  expect_damage(given, "words.gz: inflates to more than 100 times its size");
}

TEST_F(Limits, MoreColumnsThanSlots) {
  const auto wide = [](size_t columns) {
    Bytes head = "c0", record = "0";
    for (size_t i = 1; i < columns; ++i) {
      head += ",c" + std::to_string(i);
      record += ",1";
    }
    return head + "\n" + record + "\n";
  };
  EXPECT_EQ(open(file(wide(4096)))->slots(), 4096u);
  for (const bool header : {true, false}) {
    const Error error = refusal(file(wide(4097), {{"header", header}}));
    EXPECT_EQ(error.code(), TN_INVALID) << error.message();
    EXPECT_THAT(error.message(),
                AllOf(HasSubstr("columns: the files have 4097 columns; without this attribute each is a slot"),
                      HasSubstr("a reader has at most 4096"), HasSubstr("\"x = *: f32\"")));
  }
  EXPECT_EQ(open(file(wide(4097), {{"columns", Strings{"x = *: f32"}}}))->shape(0).front(), 4097);
  // The error is found in the first line, before the types of 100,000 columns are inferred.
  allocator_->most_held = 0;
  EXPECT_EQ(refusal(file(wide(100'000), {{"most_kept_bytes", int64_t{0}}})).code(), TN_INVALID);
  EXPECT_EQ(allocator_->most_held, 0u);
  Strings entries;
  for (int i = 0; i < 4097; ++i) entries.push_back("c" + std::to_string(i));
  EXPECT_THAT(refusal(file(wide(5000), {{"columns", entries}})).message(),
              HasSubstr("columns: makes 4097 slots; expected at most 4096"));
}

}  // namespace
}  // namespace tenon_tests
