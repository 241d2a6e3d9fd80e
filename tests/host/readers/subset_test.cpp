// Readers of a part of the samples: first_n, shard and split. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "tests/support/memory_system.h"
#include "tests/support/read_samples.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::shared_ptr<Allocator> memory() { return system_allocator(); }

// ---- first_n

TEST(FirstN, CutsEachPass) {
  for (const bool seeks : {true, false}) {
    MemoryData data(10);
    data.seeks = seeks;
    const auto reader = first_n(open(data), 4, memory());
    EXPECT_EQ(reader->size(), 4);
    for (int pass = 0; pass < 3; ++pass) EXPECT_EQ(rest(*reader), counted(4));
    EXPECT_EQ(rest(*first_n(open(data), 99, memory())), counted(10));
    EXPECT_EQ(rest(*first_n(open(data), 10, memory()), 4), counted(10));
    const auto none = first_n(open(data), 0, memory());
    for (int i = 0; i < 3; ++i) EXPECT_THAT(some(*none, 4), IsEmpty());
  }
  MemoryData data(10);
  EXPECT_EQ(error_of([&] { first_n(open(data), -1, memory()); }).code(), TN_INVALID);
}

TEST(FirstN, ComposesWithShuffle) {
  MemoryData data(30);
  const auto inside = shuffle(first_n(open(data), 10, memory()), 0, 1, memory());
  EXPECT_EQ(sorted(rest(*inside)), counted(10));
  const auto outside = first_n(shuffle(open(data), 0, 1, memory()), 10, memory());
  const Ids first = rest(*outside), second = rest(*outside);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 10u);
  EXPECT_NE(first, second);
  const auto twice = shuffle(shuffle(open(data), 0, 1, memory()), 0, 2, memory());
  EXPECT_EQ(sorted(rest(*twice)), counted(30));
}

TEST(FirstN, AStreamWithoutEndGoesOn) {
  MemoryData data(0);
  data.ends = data.seeks = false;
  const auto reader = first_n(open(data, false), 4, memory());
  EXPECT_EQ(reader->size(), -1);
  EXPECT_THAT(rest(*reader), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(rest(*reader), ElementsAre(4, 5, 6, 7));
}

// ---- shard

TEST(Shard, TogetherTheyAreTheDataOnce) {
  MemoryData data(23);
  for (const bool indexed : {true, false})
    for (const int64_t shards : {1, 4, 30}) {
      Ids by_wrapper, by_plugin;
      for (int64_t number = 0; number < shards; ++number) {
        const auto reader = shard(open(data, indexed), number, shards, memory());
        const Ids part = rest(*reader);
        EXPECT_EQ(static_cast<int64_t>(part.size()), reader->size());
        by_wrapper.insert(by_wrapper.end(), part.begin(), part.end());
        const Ids same = rest(*open(data, indexed, static_cast<uint32_t>(number), static_cast<uint32_t>(shards)));
        EXPECT_EQ(same, part);
        const Ids mixed = rest(*shuffle(
            open(data, indexed, static_cast<uint32_t>(number), static_cast<uint32_t>(shards)), 0, 1, memory()));
        EXPECT_EQ(sorted(mixed), part);
      }
      EXPECT_EQ(sorted(by_wrapper), counted(23));
    }
  for (const auto& [number, shards] : {std::pair{2, 2}, {-1, 2}, {0, 0}})
    EXPECT_THAT(error_of([&, n = number, of = shards] { shard(open(data), n, of, memory()); }).message(),
                HasSubstr("shard: shard "));
}

// The samples of an indexed reader may depend on the pass, so shard calls begin_pass for each pass.
TEST(Shard, TellsOfPasses) {
  MemoryData data(10);
  const auto reader = shard(open(data), 1, 3, memory());
  reader->seek(4, 1);
  EXPECT_THAT(data.passes, ElementsAre(4));
  EXPECT_THAT(rest(*reader), ElementsAre(4, 7));
  EXPECT_THAT(data.passes, ElementsAre(4, 5));
  EXPECT_EQ(error_of([&] { reader->seek(9, 4); }).code(), TN_INVALID);
  EXPECT_THAT(data.passes, ElementsAre(4, 5));  // a refused seek begins no pass
}

TEST(Shard, OfAStreamWithoutEnd) {
  MemoryData data(0);
  data.ends = data.seeks = false;
  const auto reader = shard(open(data, false), 2, 3, memory());
  EXPECT_EQ(reader->size(), -1);
  EXPECT_THAT(some(*reader, 4), ElementsAre(2, 5, 8, 11));
  EXPECT_THAT(some(*reader, 2), ElementsAre(14, 17));
  EXPECT_EQ(error_of([&] { reader->seek(0, 0); }).code(), TN_UNSUPPORTED);
  EXPECT_THAT(some(*reader, 1), ElementsAre(20));
}

// ---- split

TEST(Split, TheTwoPartsAreTheDataOnce) {
  MemoryData data(100);
  for (const double fraction : {0.2, 0.5, 0.01, 0.99})
    for (const uint64_t seed : {0, 1, 2}) {
      const auto others = split(open(data), {fraction, seed, false}, memory());
      const auto held = split(open(data), {fraction, seed, true}, memory());
      EXPECT_EQ(held->size(), std::llround(100 * fraction));
      EXPECT_EQ(others->size() + held->size(), 100);
      Ids all = rest(*others);
      EXPECT_EQ(sorted(all), all);  // in the order of the data
      const Ids out = rest(*held, 7);
      EXPECT_EQ(sorted(out), out);
      EXPECT_EQ(rest(*held), out);  // in each pass
      all.insert(all.end(), out.begin(), out.end());
      EXPECT_EQ(sorted(all), counted(100));
    }
  const auto held = [&](uint64_t seed) { return rest(*split(open(data), {0.3, seed, true}, memory())); };
  EXPECT_EQ(held(4), held(4));
  EXPECT_NE(held(4), held(5));
  std::set<int64_t> any;
  for (uint64_t seed = 0; seed < 60; ++seed)
    for (const int64_t id : held(seed)) any.insert(id);
  EXPECT_EQ(any.size(), 100u);  // every sample may be held out
}

TEST(Split, ComposesWithShardShuffleAndSeek) {
  MemoryData data(40);
  const Ids held = rest(*split(open(data), {0.25, 7, true}, memory()));
  Ids shards;
  for (const int64_t number : {0, 1, 2})
    for (const int64_t id : rest(*shard(split(open(data), {0.25, 7, true}, memory()), number, 3, memory())))
      shards.push_back(id);
  EXPECT_EQ(sorted(shards), held);
  EXPECT_EQ(sorted(rest(*shuffle(split(open(data), {0.25, 7, true}, memory()), 0, 1, memory()))), held);
  const auto reader = split(open(data), {0.25, 7, true}, memory());
  reader->seek(3, 6);
  EXPECT_EQ(rest(*reader), Ids(held.begin() + 6, held.end()));
  EXPECT_THAT(data.passes, ::testing::Contains(3));
  EXPECT_EQ(reader->pass(), 4);
}

TEST(Split, RefusesWhatItCannotDivide) {
  MemoryData data(10);
  for (const double fraction : {0.0, 1.0, -0.5, 2.0, std::nan("")})
    EXPECT_THAT(error_of([&] {
                  split(open(data), {fraction, 0, false}, memory());
                }).message(),
                HasSubstr("expected a number between 0 and 1"));
  EXPECT_THAT(error_of([&] {
                split(open(data), {0.01, 0, false}, memory());
              }).message(),
              HasSubstr("split: fraction 0.01 of 10 samples is 0; expected at least 1 sample in each part"));
  EXPECT_THAT(error_of([&] { split(open(data), {0.99, 0, false}, memory()); }).message(), HasSubstr("is 10; expected"));
  EXPECT_EQ(error_of([&] { split(open(data, false), {0.5, 0, false}, memory()); }).code(), TN_UNSUPPORTED);
}

}  // namespace
}  // namespace tenon_tests
