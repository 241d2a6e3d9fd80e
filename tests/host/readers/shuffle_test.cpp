// Readers that change the order of samples: shuffle. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "tests/support/faults.h"
#include "tests/support/memory_system.h"
#include "tests/support/read_samples.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct ShuffleCase {
  const char* name;
  bool indexed;
  int64_t buffer;
};
class Shuffle : public ::testing::TestWithParam<ShuffleCase> {
 protected:
  std::unique_ptr<Reader> shuffled(uint64_t seed) {
    return shuffle(open(data_, GetParam().indexed), GetParam().buffer, seed, system_allocator());
  }
  MemoryData data_{50, true};
};
INSTANTIATE_TEST_SUITE_P(All, Shuffle,
                         ::testing::Values(ShuffleCase{"indexed", true, 0}, ShuffleCase{"whole", false, 0},
                                           ShuffleCase{"buffer", false, 16}, ShuffleCase{"larger", false, 1000},
                                           ShuffleCase{"single", false, 1}),
                         [](const auto& it) { return it.param.name; });

TEST_P(Shuffle, GivesEachSampleOnceInEachPass) {
  const auto reader = shuffled(1);
  EXPECT_EQ(reader->size(), 50);
  Ids before;
  for (int pass = 0; pass < 3; ++pass) {
    const Ids ids = rest(*reader);
    EXPECT_EQ(sorted(ids), counted(50));
    if (GetParam().buffer != 1) {
      EXPECT_NE(ids, counted(50));
      EXPECT_NE(ids, before);
    }
    before = ids;
  }
}

TEST_P(Shuffle, OrderFollowsFromTheSeedAlone) {
  const auto one = shuffled(1), same = shuffled(1), other = shuffled(2);
  for (int pass = 0; pass < 2; ++pass) {
    data_.most = INT64_MAX;
    const Ids ids = rest(*one, 7);
    data_.most = 2;  // smaller pieces, same order
    EXPECT_EQ(rest(*same, 11), ids);
    if (GetParam().buffer == 1)
      EXPECT_EQ(ids, counted(50));
    else
      EXPECT_NE(rest(*other, 7), ids);
  }
}

TEST_P(Shuffle, ResumesAtEveryPosition) {
  const auto reader = shuffled(3);
  rest(*reader);
  const Ids second = rest(*reader);
  for (int64_t position = 0; position <= 50; ++position) {
    const auto resumed = shuffled(3);
    resumed->seek(1, position);
    EXPECT_EQ(resumed->position(), position);
    EXPECT_EQ(rest(*resumed), Ids(second.begin() + position, second.end()));
    EXPECT_EQ(resumed->position(), 0);
  }
  rest(*reader, 7, 20);
  reader->seek(1, 0);
  EXPECT_EQ(rest(*reader), second);
  EXPECT_EQ(error_of([&] { reader->seek(0, 51); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { reader->seek(-1, 0); }).code(), TN_INVALID);
}

TEST_P(Shuffle, AFailureLosesNothing) {
  const Ids expected = rest(*shuffled(4), 7);
  data_.most = 3;
  for (int64_t call = 0; call < 8; ++call) {
    data_.calls = 0;
    data_.fail_at = call;
    const auto reader = shuffled(4);
    Ids ids;
    int failures = 0;
    for (bool more = true; more;) try {
        const Ids part = some(*reader, 7);
        ids.insert(ids.end(), part.begin(), part.end());
        EXPECT_EQ(reader->position(), static_cast<int64_t>(part.empty() ? 0 : ids.size()));
        more = !part.empty();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), TN_IO);
        ++failures;
      }
    EXPECT_EQ(failures, data_.calls > call ? 1 : 0);
    EXPECT_EQ(ids, expected) << call;
  }
}

TEST_P(Shuffle, NoSamplesAndNoMemory) {
  const auto allocator = std::make_shared<FaultyAllocator>();
  allocator->fail_at = 0;
  EXPECT_EQ(error_of([&] { shuffle(open(data_, GetParam().indexed), GetParam().buffer, 1, allocator); }).code(),
            TN_OUT_OF_MEMORY);
  EXPECT_EQ(data_.opened, 0);
  EXPECT_EQ(allocator->held, 0u);
  data_.samples = 0;
  const auto empty = shuffled(1);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(some(*empty, 4), IsEmpty());
}

// Each sample is in each place, and each pair of them in either order, equally often, within four standard deviations.
TEST(ShuffleOrder, EachPlaceIsFair) {
  constexpr int kPasses = 4000;
  constexpr size_t kSamples = 5;
  for (const bool indexed : {true, false}) {
    MemoryData data(kSamples);
    const auto reader = shuffle(open(data, indexed), 0, 11, system_allocator());
    int seen[kSamples][kSamples] = {}, before[kSamples][kSamples] = {};
    for (int pass = 0; pass < kPasses; ++pass) {
      const auto order = rest(*reader, kSamples);
      for (size_t i = 0; i < kSamples; ++i) {
        ++seen[i][static_cast<size_t>(order[i])];
        for (size_t k = i + 1; k < kSamples; ++k)
          ++before[static_cast<size_t>(order[i])][static_cast<size_t>(order[k])];
      }
    }
    for (size_t i = 0; i < kSamples; ++i)
      for (size_t k = 0; k < kSamples; ++k) {
        EXPECT_NEAR(seen[i][k], 800, 101) << "place " << i << ", sample " << k;
        EXPECT_NEAR(before[i][k], i == k ? 0 : 2000, i == k ? 0 : 127) << "sample " << i << " before " << k;
      }
  }
}

// The orders of the first version: a saved seed must give the same order in every version.
TEST(ShuffleOrder, StaysAsItWas) {
  MemoryData data(8);
  EXPECT_THAT(rest(*shuffle(open(data), 0, 1, system_allocator())), ElementsAre(5, 2, 6, 0, 3, 1, 4, 7));
  EXPECT_THAT(rest(*shuffle(open(data, false), 4, 1, system_allocator())), ElementsAre(3, 2, 0, 6, 5, 7, 4, 1));
}

TEST(ShuffleOrder, MemoryOfABufferIsBounded) {
  MemoryData data(100000);
  const auto allocator = std::make_shared<FaultyAllocator>();
  const auto reader = shuffle(open(data, false), 1000, 1, allocator);
  EXPECT_EQ(sorted(rest(*reader, 100)), counted(100000));
  EXPECT_LT(allocator->most_held, 2 * 1000 * 20u);
}

TEST(ShuffleOrder, AStreamWithoutEndNeedsABuffer) {
  MemoryData data(0);
  data.ends = false;
  EXPECT_EQ(error_of([&] { shuffle(open(data, false), 0, 1, system_allocator()); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { shuffle(open(data, false), -1, 1, system_allocator()); }).code(), TN_INVALID);
  const auto reader = shuffle(open(data, false), 8, 1, system_allocator());
  const Ids ids = rest(*reader, 10, 100);
  EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), 100u);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_LT(ids[i], static_cast<int64_t>(i) + 8);
}

}  // namespace
}  // namespace tenon_tests
