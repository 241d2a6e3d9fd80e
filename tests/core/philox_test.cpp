// SPDX-License-Identifier: Apache-2.0
#include "core/philox.h"

#include <gtest/gtest.h>
#include <tenon/philox.h>

#include <cmath>
#include <map>
#include <vector>

namespace tenon_tests {

using namespace tenon::core;

namespace {

// The known answers that Random123 publishes for philox4x32 with 10 rounds; counter {index, stream}, key seed.
TEST(Philox, AnswersTheKnownAnswerTests) {
  EXPECT_EQ(Philox(0, 0).block(0), (Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(UINT64_MAX, UINT64_MAX).block(UINT64_MAX),
            (Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0a4093822, 0x0370734413198a2e).block(0x85a308d3243f6a88),
            (Philox::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, SeedsStreamsAndCountersDiffer) {
  const Philox::Block first = Philox(1, 2).block(3);
  EXPECT_EQ(first, Philox(1, 2).block(3));
  EXPECT_NE(first, Philox(2, 2).block(3));
  EXPECT_NE(first, Philox(1, 3).block(3));
  EXPECT_NE(first, Philox(1, 2).block(4));
}

TEST(Philox, ADrawOfAProgramIsOneWordOfABlock) {
  EXPECT_EQ(tn_uniform(0, 0, 0, 0), static_cast<float>(0x6627e8) * 0x1p-24F);
  for (const uint64_t element : {uint64_t{0}, uint64_t{5}, uint64_t{1} << 34 | 6}) {
    const uint32_t word = Philox(7, uint64_t{3} << 32 | 9).block(uint64_t{11} << 32 | element % 64 / 4)[element % 4];
    EXPECT_EQ(tn_uniform(7, uint64_t{3} << 32 | 9, 11, element), static_cast<float>(word >> 8) * 0x1p-24F) << element;
  }
}

TEST(Philox, UnitIntervalHasBothEndsRight) {
  EXPECT_EQ(unit_interval(0, 0), 0.0);
  EXPECT_EQ(unit_interval(0x80000000, 0), 0.5);
  EXPECT_EQ(unit_interval(0, 1u << 11), 0x1p-53);
  EXPECT_EQ(unit_interval(0, (1u << 11) - 1), 0.0);
  EXPECT_EQ(unit_interval(UINT32_MAX, UINT32_MAX), 1.0 - 0x1p-53);
}

TEST(Philox, BelowStaysBelowAndIsFair) {
  const Philox philox(7);
  uint64_t index = 0;
  constexpr int kDraws = 70000, kBound = 7;
  std::map<uint64_t, int> seen;
  for (int i = 0; i < kDraws; ++i) ++seen[below(philox, &index, kBound)];
  EXPECT_EQ(index, uint64_t{kDraws});
  ASSERT_EQ(seen.size(), size_t{kBound});
  EXPECT_LT(seen.rbegin()->first, uint64_t{kBound});
  double chi_squared = 0;  // 6 degrees of freedom: above 30 once in 25,000 seeds
  for (const auto& [value, count] : seen) chi_squared += std::pow(count - kDraws / kBound, 2) / (kDraws / kBound);
  EXPECT_LT(chi_squared, 30);
}

TEST(Philox, BelowDrawsAgainWhereAPlainProductWouldBeBiased) {
  const Philox philox(3);
  const uint64_t bound = (uint64_t{1} << 63) + 1;  // almost half of all draws are too large and are repeated
  uint64_t index = 0;
  constexpr uint64_t kDraws = 1000;
  for (uint64_t i = 0; i < kDraws; ++i) ASSERT_LT(below(philox, &index, bound), bound);
  EXPECT_GT(index, kDraws * 3 / 2);
  EXPECT_LT(index, kDraws * 3);
}

TEST(Philox, BelowOneIsZeroAndAllBitsCanBeAskedFor) {
  const Philox philox(5);
  uint64_t index = 10;
  EXPECT_EQ(below(philox, &index, 1), 0u);
  EXPECT_EQ(index, 11u);
  const Philox::Block block = philox.block(11);
  const uint64_t draw = uint64_t{block[0]} << 32 | block[1];
  EXPECT_EQ(below(philox, &index, uint64_t{1} << 63), draw >> 1);
}

}  // namespace
}  // namespace tenon_tests
