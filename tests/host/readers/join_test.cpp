// Several readers as one: chain, interleave, compose. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/memory_system.h"
#include "tests/support/read_samples.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<Allocator> memory() { return system_allocator(); }

Readers two(std::unique_ptr<Reader> a, std::unique_ptr<Reader> b) {
  Readers result;
  result.push_back(std::move(a));
  result.push_back(std::move(b));
  return result;
}

TEST(Chain, OneAfterTheOther) {
  MemoryData a(3), b(2), none(0);
  Readers readers = two(open(a), open(none));
  readers.push_back(open(b));
  const auto reader = chain(std::move(readers), memory());
  EXPECT_EQ(reader->size(), 5);
  for (int pass = 0; pass < 2; ++pass) EXPECT_THAT(rest(*reader, 10), ElementsAre(0, 1, 2, 0, 1));
}

TEST(Chain, SizesThatAreNotKnown) {
  MemoryData a(3), b(4);
  a.sized = false;
  const auto reader = chain(two(open(a, false), open(b)), memory());
  EXPECT_EQ(reader->size(), -1);
  EXPECT_FALSE(reader->indexed());
  const Ids all = rest(*reader);
  EXPECT_THAT(all, ElementsAre(0, 1, 2, 0, 1, 2, 3));
  for (int64_t position = 0; position <= 7; ++position) {
    reader->seek(4, position);
    EXPECT_EQ(reader->position(), position);
    EXPECT_EQ(rest(*reader), Ids(all.begin() + position, all.end()));
    EXPECT_EQ(reader->pass(), 5);
  }
  EXPECT_THAT(error_of([&] { reader->seek(0, 8); }).message(), HasSubstr("chain: the pass has 1 samples less"));
}

TEST(Chain, NeedsRoom) {
  MemoryData a(3), b(2);
  const Error error = error_of([&] { some(*chain(two(open(a), open(b)), memory()), 0); });
  EXPECT_EQ(error.code(), TN_INVALID);
  EXPECT_THAT(error.message(), HasSubstr("chain"));
}

// begin_pass of chain and interleave calls begin_pass of all their readers.
TEST(Joined, AllBeginAPass) {
  MemoryData a(3), b(3);
  chain(two(open(a), open(b)), memory())->begin_pass(5);
  interleave(two(open(a), open(b)), memory())->begin_pass(6);
  EXPECT_THAT(a.passes, testing::IsSupersetOf({5, 6}));
  EXPECT_THAT(b.passes, testing::IsSupersetOf({5, 6}));
}

TEST(Chain, SeekIsForAllOrNone) {
  MemoryData a(3), b(3);
  b.seeks = false;
  const auto reader = chain(two(open(a), open(b)), memory());
  EXPECT_THAT(some(*reader, 2), ElementsAre(0, 1));
  EXPECT_EQ(error_of([&] { reader->seek(0, 0); }).code(), TN_UNSUPPORTED);
  EXPECT_EQ(reader->position(), 2);
  EXPECT_THAT(rest(*reader), ElementsAre(2, 0, 1, 2));
}

TEST(Joined, SlotsMustBeTheSame) {
  MemoryData a(3), b(3), c(3, true), d(3), e(3);
  b.value.name = "other";
  d.value_shape[0] = 4;
  e.id.index_limit = 7;
  const auto message = [&](MemoryData& other, bool chained) {
    return error_of([&] {
             chained ? chain(two(open(a), open(other)), memory()) : interleave(two(open(a), open(other)), memory());
           })
        .message();
  };
  for (const bool chained : {true, false}) {
    const std::string who = chained ? "chain: " : "interleave: ";
    EXPECT_EQ(message(b, chained), who +
                                       "slot 2 is \"value\", float32 [3], in reader 1 and \"other\", float32 [3], in "
                                       "reader 2");
    EXPECT_THAT(message(c, chained), AllOf(HasSubstr(who), HasSubstr("reader 2 (slots \"id\", \"value\", \"words\"")));
    EXPECT_THAT(message(d, chained), HasSubstr("float32 [4]"));
    EXPECT_EQ(message(e, chained), "");
  }
  EXPECT_EQ(chain(two(open(e), open(e)), memory())->slots()[0].index_limit, 7);
  EXPECT_EQ(chain(two(open(e), open(a)), memory())->slots()[0].index_limit, -1);
  EXPECT_EQ(error_of([&] { chain({}, memory()); }).message(), "chain: no readers; expected at least 1");
  EXPECT_EQ(error_of([&] { interleave({}, memory()); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { compose({}, memory()); }).code(), TN_INVALID);
}

TEST(Interleave, OneOfEachInTurn) {
  MemoryData a(4), b(2), c(3);
  b.sized = false;
  Readers readers = two(open(a), open(b, false));
  readers.push_back(open(c));
  const auto reader = interleave(std::move(readers), memory());
  EXPECT_EQ(reader->size(), -1);
  const Ids all = rest(*reader, 5);
  EXPECT_THAT(all, ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 3));
  for (int64_t position = 0; position <= 9; ++position) {
    reader->seek(2, position);
    EXPECT_EQ(rest(*reader, 4), Ids(all.begin() + position, all.end())) << position;
  }
}

TEST(Interleave, WithAStreamWithoutEnd) {
  MemoryData a(2), b(0);
  b.ends = b.seeks = false;
  const auto reader = interleave(two(open(a), open(b, false)), memory());
  EXPECT_THAT(rest(*reader, 3, 8), ElementsAre(0, 0, 1, 1, 2, 3, 4, 5));
}

TEST(Compose, PutsSlotsSideBySide) {
  MemoryData a(6, true), b(6, true);
  b.most = 2;
  const auto reader = compose(two(choose(open(a), {{"id", "id"}, {"words", "words"}}, memory()),
                                  choose(open(b, false), {{"text", "text"}, {"bag", "bag"}}, memory())),
                              memory());
  ASSERT_EQ(reader->slots().size(), 4u);
  EXPECT_EQ(reader->slots()[3].name, "bag");
  EXPECT_EQ(reader->size(), 6);
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(rest(*reader, 4), counted(6));
}

TEST(Compose, RefusesWhatDoesNotFit) {
  MemoryData a(6), b(5), c(5);
  c.sized = false;
  EXPECT_EQ(error_of([&] { compose(two(open(a), open(a)), memory()); }).message(),
            "compose: reader 1 (slots \"id\", \"value\") and reader 2 (slots \"id\", \"value\") both have a slot "
            "\"id\"; rename one with choose");
  const auto other = [&](MemoryData& data) { return choose(open(data, false), {{"value", "other"}}, memory()); };
  EXPECT_EQ(error_of([&] { compose(two(open(a), other(b)), memory()); }).message(),
            "compose: reader 1 (slots \"id\", \"value\") has 6 samples and reader 2 (slots \"other\") has 5");
  for (const bool longer_first : {true, false}) {
    const auto reader =
        longer_first ? compose(two(open(a), other(c)), memory()) : compose(two(other(c), open(a)), memory());
    EXPECT_EQ(rest(*reader, 3, 5), counted(5));
    for (int i = 0; i < 2; ++i) {
      const Error error = error_of([&] { some(*reader, 3); });
      EXPECT_EQ(error.code(), TN_BAD_DATA);
      EXPECT_THAT(error.message(), AllOf(HasSubstr("compose: reader "),
                                         HasSubstr(" (slots \"other\") ended after 5 samples of pass 1; "
                                                   "reader "),
                                         HasSubstr(" (slots \"id\", \"value\") goes on")));
    }
    reader->seek(0, 3);
    EXPECT_THAT(rest(*reader, 3, 2), ElementsAre(3, 4));
  }
}

}  // namespace
}  // namespace tenon_tests
