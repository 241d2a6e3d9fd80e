// The reader idx, loaded as a plugin: its samples, and its messages about damaged files.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "core/error.h"
#include "host/plugins/registry.h"
#include "host/plugins/services.h"
#include "host/readers/reader.h"
#include "tests/support/faults.h"
#include "tests/support/memory_system.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
namespace fs = std::filesystem;
using Bytes = std::string;
using Strings = std::vector<std::string>;
using Ints = std::vector<int64_t>;

constexpr const char* kFashion = "/usr/share/datasets/fashion-mnist";

Bytes big_endian(uint64_t value, int bytes) {
  Bytes result;
  for (int i = bytes - 1; i >= 0; --i) result += static_cast<char>(value >> (8 * i));
  return result;
}

Bytes header(uint8_t type, const std::vector<uint32_t>& dims) {
  Bytes result = {0, 0, static_cast<char>(type), static_cast<char>(dims.size())};
  for (const uint32_t dim : dims) result += big_endian(dim, 4);
  return result;
}

// `count` bytes: 0, 1, 2 ...
Bytes ramp(size_t count) {
  Bytes result;
  for (size_t i = 0; i < count; ++i) result += static_cast<char>(i);
  return result;
}

Bytes gzip(const Bytes& plain, int level = 6) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes result(deflateBound(&stream, plain.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

class Idx : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(allocator_->held, 0u); }

  void put(const std::string& name, const Bytes& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }

  std::unique_ptr<Reader> open(const Values& attributes, uint32_t shard = 0, uint32_t shards = 1) {
    ReaderSettings settings;
    settings.directory = folder_.string();
    settings.shard = shard;
    settings.shards = shards;
    settings.cancel = &cancel_;
    settings.schema_alone = schema_alone_;
    return open_reader(registry_.reader("idx"), attributes, services_.tables(registry_.reader("idx")), settings);
  }
  // Writes the content to the file "f" and opens a reader of it.
  std::unique_ptr<Reader> open_content(const Bytes& content, uint32_t shard = 0, uint32_t shards = 1) {
    put("f", content);
    return open({{"files", Strings{"f"}}}, shard, shards);
  }
  Error refusal(const Bytes& content) {
    const Error error = error_of([&] { open_content(content); });
    EXPECT_THAT(error.message(), HasSubstr("reader \"idx\": " + (folder_ / "f").string() + ": "));
    return error;
  }
  // Checks that the content is refused for the same reason whether it is plain or compressed.
  void expect_refused(const Bytes& content, const std::string& reason, tn_status code = TN_BAD_DATA) {
    for (const Bytes& form : {content, gzip(content)}) {
      const Error error = refusal(form);
      EXPECT_EQ(error.code(), code) << error.message();
      EXPECT_THAT(error.message(), HasSubstr(reason));
    }
  }

  const tenon_tests::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  int32_t cancel_ = 0;
  bool schema_alone_ = false;
  std::shared_ptr<FaultyAllocator> allocator_ = std::make_shared<FaultyAllocator>();
  Services services_{allocator_, nullptr};
  Registry registry_{{tenon_tests::plugin_folder() + "/readers"}, system_files()};
};

// The samples of one slot as bytes.
Bytes bytes_of(const SampleBlock& block, size_t slot) {
  const Column& column = block.columns()[slot];
  return {static_cast<const char*>(column.view().data), column.slot().bytes * static_cast<uint64_t>(column.samples())};
}

// Every sample of one slot as bytes, by next, `capacity` at a time.
Bytes all_of(Reader& reader, size_t slot = 0, int64_t capacity = 2) {
  SampleBlock block(reader.slots(), system_allocator());
  while (reader.next(block, capacity) != 0) {
  }
  return bytes_of(block, slot);
}

template <typename T>
std::vector<T> as(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST_F(Idx, TheSchemaAloneNeedsTheHeaderAlone) {
  const Bytes cut = header(8, {1000, 2, 3}) + ramp(5);
  schema_alone_ = true;
  for (const Bytes& content : {cut, gzip(cut)}) {
    const auto reader = open_content(content, 1, 3);
    EXPECT_EQ(reader->size(), 333);
    EXPECT_EQ(reader->slots().at(0).shape, (std::vector<int64_t>{2, 3}));
    SampleBlock block(reader->slots(), system_allocator());
    for (const auto& use : std::vector<std::function<void()>>{[&] { reader->next(block, 1); },
                                                              [&] {
                                                                const int64_t index = 0;
                                                                reader->read_at(&index, 1, block);
                                                              },
                                                              [&] { reader->seek(0, 0); }}) {
      const Error error = error_of(use);
      EXPECT_EQ(error.code(), TN_MISUSE);
      EXPECT_THAT(error.message(), HasSubstr("it was opened for its schema alone"));
    }
  }
  schema_alone_ = false;
  expect_refused(cut, "truncated");
}

TEST_F(Idx, ReadsPlainAndGzipAlike) {
  put("images", header(8, {5, 2, 3}) + ramp(30));
  put("images.gz", gzip(header(8, {5, 2, 3}) + ramp(30)));
  put("labels", header(8, {5}) + ramp(5));
  for (const char* images : {"images", "images.gz"}) {
    const auto reader = open({{"files", Strings{images, (folder_ / "labels").string()}}});
    ASSERT_EQ(reader->slots().size(), 2u);
    EXPECT_EQ(reader->slots()[0].name, "image");
    EXPECT_THAT(reader->slots()[0].shape, ElementsAre(2, 3));
    EXPECT_EQ(reader->slots()[0].dtype, TN_U8);
    EXPECT_EQ(reader->slots()[0].index_limit, -1);
    EXPECT_EQ(reader->slots()[1].name, "label");
    EXPECT_TRUE(reader->slots()[1].shape.empty());
    EXPECT_EQ(reader->size(), 5);
    EXPECT_TRUE(reader->indexed());
    EXPECT_EQ(all_of(*reader), ramp(30));
    EXPECT_EQ(all_of(*reader, 1), ramp(5));
    const int64_t indices[] = {4, 0, 4, 2, 1, 3};
    SampleBlock block(reader->slots(), system_allocator());
    reader->read_at(indices, 6, block);
    const Bytes image = bytes_of(block, 0);
    EXPECT_EQ(bytes_of(block, 1), Bytes({4, 0, 4, 2, 1, 3}));
    EXPECT_EQ(image.substr(6, 6), ramp(6));
    EXPECT_EQ(image.substr(12, 6), ramp(30).substr(24));
  }
}

TEST_F(Idx, GivesEveryTypeInNativeOrder) {
  const auto values_of = [&](uint8_t type, tn_dtype dtype, const Bytes& values) {
    const auto reader = open_content(header(type, {3}) + values);
    EXPECT_EQ(reader->slots()[0].dtype, dtype);
    EXPECT_EQ(reader->size(), 3);
    return all_of(*reader);
  };
  const auto bits = [](auto value) {
    uint64_t result = 0;
    std::memcpy(&result, &value, sizeof value);
    return big_endian(result, sizeof value);
  };
  EXPECT_THAT(as<uint8_t>(values_of(0x08, TN_U8, {0, 1, '\xff'})), ElementsAre(0, 1, 255));
  EXPECT_THAT(as<int8_t>(values_of(0x09, TN_I8, {0, 1, '\xff'})), ElementsAre(0, 1, -1));
  EXPECT_THAT(as<int16_t>(values_of(0x0B, TN_I16, bits(int16_t{1}) + bits(int16_t{-2}) + bits(int16_t{0x1234}))),
              ElementsAre(1, -2, 0x1234));
  EXPECT_THAT(as<int32_t>(values_of(0x0C, TN_I32, bits(1) + bits(-2) + bits(0x12345678))),
              ElementsAre(1, -2, 0x12345678));
  EXPECT_THAT(as<float>(values_of(0x0D, TN_F32, bits(1.5F) + bits(-0.25F) + bits(3e30F))),
              ElementsAre(1.5F, -0.25F, 3e30F));
  EXPECT_THAT(as<double>(values_of(0x0E, TN_F64, bits(1.5) + bits(-0.25) + bits(3e300))),
              ElementsAre(1.5, -0.25, 3e300));
}

TEST_F(Idx, RefusesDamagedHeaders) {
  expect_refused("", "less than 4 bytes");
  expect_refused({0, 0, 8}, "less than 4 bytes");
  expect_refused({0, 1, 8, 1}, "not an IDX file");
  expect_refused({0, 0, 0x0A, 1}, "got 00 00 0a 01");
  expect_refused({0, 0, 8, 0}, "not an IDX file");
  expect_refused("PNG and so on", "not an IDX file");
  expect_refused(header(8, {1, 2}).substr(0, 10), "the header ends before dimension 2 of 2");
  expect_refused(header(8, {3, 0, 2}), "dimension 2 of the header is 0");
  expect_refused(header(8, std::vector<uint32_t>(10, 1)) + "x", "has 10 dimensions; at most 8", TN_UNSUPPORTED);
  expect_refused(header(8, std::vector<uint32_t>(8, UINT32_MAX)), "more bytes than there can be");
  expect_refused(header(0x0E, {UINT32_MAX, 1u << 16, 1u << 13}), "more bytes than there can be");
}

TEST_F(Idx, RefusesTooFewAndTooManyValues) {
  const Bytes whole = header(8, {5, 2, 3}) + ramp(30);
  for (const size_t missing : {1u, 6u, 29u, 30u})
    expect_refused(whole.substr(0, whole.size() - missing),
                   "truncated: expected 30 bytes of values for uint8 [5, 2, 3], got " + std::to_string(30 - missing));
  expect_refused(whole + "x", "holds more than the 30 bytes of values that its header says, uint8 [5, 2, 3]");
  expect_refused(header(8, {0, 2, 3}) + "x", "holds more than the 0 bytes");
}

TEST_F(Idx, AllocatesNoMoreThanIsThere) {
  const uint32_t huge = 3'000'000'000;
  for (const Bytes& content : {header(8, {huge}) + "x", gzip(header(8, {huge}) + "x"), header(0x0E, {huge, 1000}) + "x",
                               header(8, {1, huge}) + Bytes(100'000, 'x')}) {
    EXPECT_THAT(refusal(content).message(), HasSubstr("truncated"));
    EXPECT_LT(allocator_->most_held, 400'000u);
  }
  // 64 MiB of zeros in 64 KiB: refused as soon as there is one byte too many.
  allocator_->most_held = 0;
  const Bytes bomb = gzip(header(8, {10}) + Bytes(size_t{64} << 20, '\0'), 9);
  EXPECT_LT(bomb.size(), 100'000u);
  EXPECT_THAT(refusal(bomb).message(), HasSubstr("holds more than the 10 bytes"));
  EXPECT_LE(allocator_->most_held, 10u);
  // Content that compresses well and agrees with its header is read.
  const auto reader = open_content(gzip(header(8, {4, 1u << 20}) + Bytes(size_t{4} << 20, '\7'), 9));
  EXPECT_EQ(all_of(*reader), Bytes(size_t{4} << 20, '\7'));
  EXPECT_EQ(allocator_->held, uint64_t{4} << 20);
}

TEST_F(Idx, RefusesDamagedGzip) {
  const Bytes whole = gzip(header(8, {1000}) + ramp(1000));
  for (const size_t size : {size_t{2}, size_t{9}, size_t{20}, whole.size() - 9, whole.size() - 1}) {
    const Error error = refusal(whole.substr(0, size));
    EXPECT_EQ(error.code(), TN_BAD_DATA);
    EXPECT_THAT(error.message(), HasSubstr("the compressed data ends in the middle"));
  }
  const auto changed = [&](size_t at) {
    Bytes copy = whole;
    copy[at] = static_cast<char>(copy[at] ^ 0x55);
    return copy;
  };
  EXPECT_THAT(refusal(changed(whole.size() - 8)).message(), HasSubstr("damaged gzip data: incorrect data check"));
  EXPECT_THAT(refusal(changed(whole.size() - 1)).message(), HasSubstr("damaged gzip data: incorrect length check"));
  EXPECT_THAT(refusal(changed(2)).message(), HasSubstr("damaged gzip data: "));
  EXPECT_THAT(refusal(whole + "garbage").message(), HasSubstr("damaged gzip data after a complete stream"));
  // A changed byte may also give a header that is refused before the checksum is reached.
  for (size_t at = 10; at < whole.size(); ++at)
    EXPECT_THAT(refusal(changed(at)).code(), AnyOf(TN_BAD_DATA, TN_UNSUPPORTED)) << "byte " << at;
}

TEST_F(Idx, ReadsSeveralGzipMembers) {
  const Bytes plain = header(8, {300}) + ramp(300);
  const auto reader = open_content(gzip(plain.substr(0, 100)) + gzip("") + gzip(plain.substr(100)));
  EXPECT_EQ(all_of(*reader), ramp(300));
  EXPECT_THAT(refusal(gzip(plain) + gzip("x")).message(), HasSubstr("holds more than"));
}

TEST_F(Idx, RefusesUnequalCountsAndAbsentFiles) {
  put("images", header(8, {5, 2}) + ramp(10));
  put("labels", header(8, {4}) + ramp(4));
  const auto error_for = [&](const char* second) {
    return error_of([&] { open({{"files", Strings{"images", second}}}); });
  };
  const Error unequal = error_for("labels");
  EXPECT_EQ(unequal.code(), TN_BAD_DATA);
  EXPECT_THAT(unequal.message(), AllOf(HasSubstr((folder_ / "labels").string() + ": expected 5 samples"),
                                       HasSubstr((folder_ / "images").string() + ", got 4")));
  EXPECT_EQ(error_for("absent").code(), TN_NOT_FOUND);
  EXPECT_THAT(error_for("absent").message(), HasSubstr((folder_ / "absent").string() + ": cannot open it"));
  EXPECT_EQ(error_for(".").code(), TN_INVALID);
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_for("pipe").code(), TN_INVALID);
}

TEST_F(Idx, NamesComeFromTheAttribute) {
  for (const char* name : {"a", "b", "c"}) put(name, header(8, {2}) + ramp(2));
  const auto reader = open({{"files", Strings{"a", "b", "c"}}, {"names", Strings{"x", "y", "z"}}});
  EXPECT_EQ(reader->slots()[2].name, "z");
  const auto message_for = [&](const Strings& files, const Values& more) {
    Values values = more;
    values["files"] = files;
    const Error error = error_of([&] { open(values); });
    EXPECT_EQ(error.code(), TN_INVALID);
    return error.message();
  };
  EXPECT_THAT(message_for({"a", "b", "c"}, {}), HasSubstr("names: expected 3 names, one for each file, got 0"));
  EXPECT_THAT(message_for({"a"}, {{"names", Strings{"x", "y"}}}), HasSubstr("names: expected 1 names"));
  EXPECT_THAT(message_for({"a", "b"}, {{"names", Strings{"x", "x"}}}), HasSubstr("names: duplicate name \"x\""));
  EXPECT_THAT(message_for({"a", "b"}, {{"names", Strings{"x", ""}}}), HasSubstr("names: a name is empty"));
  EXPECT_THAT(message_for({}, {}), HasSubstr("files: expected at least one file"));
  EXPECT_THAT(error_of([&] { open({{"file", Strings{"a"}}}); }).message(), HasSubstr("files"));
}

TEST_F(Idx, NanIsRefusedUnlessItIsAllowed) {
  put("floats", header(0x0D, {2, 2}) + Bytes(12, '\0') + Bytes{'\xFF', '\xC0', 0, 0});
  put("infinite", header(0x0D, {2, 2}) + Bytes(12, '\0') + Bytes{'\x7F', '\x80', 0, 0});
  const auto read = [&](const char* file, const char* nan) {
    all_of(*open({{"files", Strings{file}}, {"nan", std::string(nan)}}));
  };
  const Error error = error_of([&] { read("floats", "refuse"); });
  EXPECT_EQ(error.code(), TN_BAD_DATA);
  EXPECT_THAT(error.message(), HasSubstr("floats: sample 1: number 1 is nan"));
  read("floats", "allow");
  read("infinite", "refuse");
}

TEST_F(Idx, ClassesAreCheckedAtOpen) {
  put("images", header(8, {4, 2}) + ramp(8));
  put("labels", header(8, {4}) + Bytes({0, 2, 1, 2}));
  put("signed", header(9, {4}) + Bytes({0, 1, '\xfe', 0}));
  put("floats", header(0x0D, {4}) + Bytes(16, '\0'));
  const auto with = [&](const char* second, const Ints& classes, uint32_t shard = 0, uint32_t shards = 1) {
    return open({{"files", Strings{"images", second}}, {"classes", classes}}, shard, shards);
  };
  EXPECT_EQ(with("labels", {3})->slots()[1].index_limit, 3);
  EXPECT_EQ(with("labels", {3})->slots()[0].index_limit, -1);
  EXPECT_EQ(with("labels", {8, 3})->slots()[0].index_limit, 8);
  EXPECT_EQ(with("labels", {0, 3})->slots()[0].index_limit, -1);
  const auto message_for = [&](const char* second, const Ints& classes, tn_status code) {
    const Error error = error_of([&] { with(second, classes); });
    EXPECT_EQ(error.code(), code);
    return error.message();
  };
  EXPECT_THAT(message_for("labels", {2}, TN_BAD_DATA),
              HasSubstr((folder_ / "labels").string() + ": sample 1: expected a value from 0 to 1, got 2"));
  EXPECT_THAT(message_for("signed", {2}, TN_BAD_DATA), HasSubstr("sample 2: expected a value from 0 to 1, got -2"));
  EXPECT_THAT(message_for("labels", {7, 3}, TN_BAD_DATA),
              HasSubstr("images: sample 3: expected a value from 0 to 6, got 7"));
  EXPECT_THAT(message_for("floats", {0, 3}, TN_INVALID), HasSubstr("floats holds float32; expected whole numbers"));
  EXPECT_THAT(message_for("floats", {3}, TN_INVALID), HasSubstr("classes: no file holds one whole number"));
  EXPECT_THAT(message_for("labels", {1, 2, 3}, TN_INVALID), HasSubstr("classes: expected one number"));
  EXPECT_THAT(error_of([&] { with("labels", {2}, 1, 2); }).message(), HasSubstr("sample 1"));
  EXPECT_EQ(with("labels", {2}, 2, 4)->size(), 1);  // the labels outside of the range are in other shards
  // Values of several bytes, of which four are a sample or one is: the number is that of the sample.
  for (const auto& [code, bytes] : {std::pair(uint8_t{0x0B}, size_t{2}), std::pair(uint8_t{0x0C}, size_t{4})}) {
    Bytes values;
    for (const char value : Bytes{0, 1, 2, 1, 0, 2, 1, 0, 0, 0, 5, 0, 1, 1, 1, 1})
      values += Bytes(bytes - 1, '\0') + value;
    put("wide", header(code, {4, 4}) + values);
    EXPECT_EQ(with("wide", {0, 6})->slots()[1].index_limit, 6);
    EXPECT_THAT(message_for("wide", {0, 3}, TN_BAD_DATA), HasSubstr("sample 2: expected a value from 0 to 2, got 5"));
    put("wide", header(code, {4}) + values.substr(0, 4 * bytes));
    EXPECT_EQ(with("wide", {3})->slots()[1].index_limit, 3);
    EXPECT_THAT(message_for("wide", {2}, TN_BAD_DATA), HasSubstr("sample 2: expected a value from 0 to 1, got 2"));
  }
}

TEST_F(Idx, ShardsTogetherAreTheDataOnce) {
  const Bytes content = header(0x0B, {7}) + ramp(14);
  for (const Bytes& form : {content, gzip(content)}) {
    const Bytes all = all_of(*open_content(form));
    Bytes joined(14, '?');
    for (uint32_t shard = 0; shard < 3; ++shard) {
      const auto reader = open_content(form, shard, 3);
      EXPECT_EQ(reader->size(), shard == 0 ? 3 : 2);
      EXPECT_EQ(allocator_->held, static_cast<uint64_t>(reader->size()) * 2);  // keeps no more than its shard
      const Bytes part = all_of(*reader);
      for (size_t i = 0; i < part.size() / 2; ++i) joined.replace((i * 3 + shard) * 2, 2, part.substr(i * 2, 2));
    }
    EXPECT_EQ(joined, all);
    EXPECT_EQ(open_content(form, 8, 9)->size(), 0);
  }
  put("f", header(0x0B, {7}) + ramp(13));
  EXPECT_THAT(error_of([&] { open({{"files", Strings{"f"}}}, 0, 3); }).message(), HasSubstr("truncated"));
}

TEST_F(Idx, ResumesAtEveryPositionAndReadsEmptyFiles) {
  const auto reader = open_content(header(8, {6}) + ramp(6));
  for (int64_t position = 0; position <= 6; ++position) {
    reader->seek(0, position);
    EXPECT_EQ(all_of(*reader), ramp(6).substr(static_cast<size_t>(position)));
  }
  const auto empty = open_content(header(8, {0, 2, 3}));
  EXPECT_EQ(empty->size(), 0);
  EXPECT_EQ(all_of(*empty), "");
  EXPECT_EQ(all_of(*empty), "");
}

TEST_F(Idx, StopsWhenItIsCancelled) {
  put("f", gzip(header(8, {1u << 20}) + Bytes(1u << 20, 'x')));
  cancel_ = 1;
  EXPECT_EQ(error_of([&] { open({{"files", Strings{"f"}}}); }).code(), TN_CANCELLED);
}

TEST_F(Idx, NoMemoryIsAnErrorWhereverItHappens) {
  put("images", gzip(header(8, {40, 10'000}) + Bytes(400'000, 'x')));
  put("labels", header(8, {40}) + ramp(40));
  const Values values = {{"files", Strings{"images", "labels"}}};
  ASSERT_EQ(open(values)->size(), 40);
  const int64_t calls = allocator_->calls;
  ASSERT_GE(calls, 3);  // the images are larger than expected, so their memory grew
  for (int64_t call = 0; call < calls; ++call) {
    allocator_->calls = 0;
    allocator_->fail_at = call;
    EXPECT_EQ(error_of([&] { open(values); }).code(), TN_OUT_OF_MEMORY);
    EXPECT_EQ(allocator_->held, 0u);
  }
}

TEST_F(Idx, ReadsFashionMnist) {
  if (!fs::exists(kFashion)) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  const auto check = [&](const std::string& part, int64_t samples) {
    const std::string stem = std::string(kFashion) + "/" + part;
    const auto reader = open(
        {{"files", Strings{stem + "-images-idx3-ubyte.gz", stem + "-labels-idx1-ubyte.gz"}}, {"classes", Ints{10}}});
    EXPECT_EQ(reader->size(), samples);
    EXPECT_THAT(reader->slots()[0].shape, ElementsAre(28, 28));
    EXPECT_EQ(reader->slots()[1].index_limit, 10);
    EXPECT_EQ(allocator_->held, static_cast<uint64_t>(samples) * 785);
    std::vector<int64_t> counts(10);
    for (const char label : all_of(*reader, 1, 128)) ++counts[static_cast<size_t>(label)];
    EXPECT_THAT(counts, ElementsAreArray(std::vector<int64_t>(10, samples / 10)));
    const auto mixed = shuffle(open({{"files", Strings{stem + "-images-idx3-ubyte.gz"}}}), 0, 1, system_allocator());
    uint64_t in_order = 0, in_disorder = 0;
    for (const char pixel : all_of(*reader, 0, 128)) in_order += static_cast<uint8_t>(pixel);
    for (const char pixel : all_of(*mixed, 0, 128)) in_disorder += static_cast<uint8_t>(pixel);
    EXPECT_EQ(in_order, in_disorder);
    return static_cast<double>(in_order) / static_cast<double>(samples * 784) / 255;
  };
  EXPECT_NEAR(check("train", 60000), 0.2860, 5e-5);  // the published mean of the training images
  EXPECT_NEAR(check("t10k", 10000), 0.2868, 5e-5);
}

}  // namespace
}  // namespace tenon_tests
