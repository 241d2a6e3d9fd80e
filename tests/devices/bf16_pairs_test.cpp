// Pairs of bfloat16 numbers, and sums of their products, with each instruction set.
// SPDX-License-Identifier: Apache-2.0
#include "bf16_pairs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gemm_tile.h"
#include "tests/devices/gemm_reference.h"

namespace tenon_tests {
namespace {

using namespace tenon::cpu;

float lower(uint32_t pair) { return std::bit_cast<float>(pair << 16); }
float upper(uint32_t pair) { return std::bit_cast<float>(pair & 0xffff0000); }

std::vector<Isa> instruction_sets() {
  std::vector<Isa> sets = {Isa::kBaseline};
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512})
    if (isa <= detect_isa()) sets.push_back(isa);
  return sets;
}

std::vector<float> random_numbers(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(std::uniform_real_distribution<>(-3, 3)(random));
  return numbers;
}

TEST(Bf16Pairs, AreTheNearestNumbers) {
  constexpr int64_t kRows = 5, kColumns = 77;
  const std::vector<float> numbers = random_numbers(kRows * kColumns, 1);
  const auto at = [&](int64_t row, int64_t column) {
    return row < kRows && column < kColumns ? to_bfloat16(numbers[static_cast<size_t>(row * kColumns + column)]) : 0.0;
  };
  for (const Isa isa : instruction_sets()) {
    std::vector<uint32_t> along(kRows * pairs_of(kColumns)), down(pairs_of(kRows) * kColumns);
    pair_kernels(isa).along(numbers.data(), kRows, kColumns, along.data());
    pair_kernels(isa).down(numbers.data(), kRows, kColumns, down.data());
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t p = 0; p < pairs_of(kColumns); ++p) {
        const uint32_t pair = along[static_cast<size_t>(row * pairs_of(kColumns) + p)];
        ASSERT_EQ(lower(pair), at(row, 2 * p));
        ASSERT_EQ(upper(pair), at(row, 2 * p + 1));
      }
    for (int64_t p = 0; p < pairs_of(kRows); ++p)
      for (int64_t column = 0; column < kColumns; ++column) {
        const uint32_t pair = down[static_cast<size_t>(p * kColumns + column)];
        ASSERT_EQ(lower(pair), at(2 * p, column));
        ASSERT_EQ(upper(pair), at(2 * p + 1, column));
      }
  }
}

TEST(Bf16Pairs, KeepWhatIsNoNumber) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
  const float given[] = {kInf, -kInf, std::bit_cast<float>(0x7f800001U), NAN, -0.0F, kMost, 1.00390625F, 1.01171875F};
  for (const Isa isa : instruction_sets()) {
    uint32_t pairs[4];
    pair_kernels(isa).along(given, 1, 8, pairs);
    EXPECT_EQ(lower(pairs[0]), kInf);
    EXPECT_EQ(upper(pairs[0]), -kInf);
    EXPECT_TRUE(std::isnan(lower(pairs[1])));
    EXPECT_TRUE(std::isnan(upper(pairs[1])));
    EXPECT_TRUE(lower(pairs[2]) == 0 && std::signbit(lower(pairs[2])));
    EXPECT_EQ(upper(pairs[2]), kInf);  // the nearest one is beyond the largest
    EXPECT_EQ(lower(pairs[3]), 1.0F);  // halfway: to the even ones
    EXPECT_EQ(upper(pairs[3]), 1.015625F);
  }
}

// C [rows, columns] = A B, of pairs.
TEST(Bf16Pairs, ProductsAreSumsOfTheProductsOfBoth) {
  constexpr int64_t kRows = 11, kColumns = 53, kDepth = 401;
  const std::vector<float> a = random_numbers(kRows * kDepth, 1), b = random_numbers(kDepth * kColumns, 2);
  for (const Isa isa : instruction_sets()) {
    const int64_t depth = pairs_of(kDepth);
    std::vector<uint32_t> left(static_cast<size_t>(kRows * depth)), right(static_cast<size_t>(depth * kColumns));
    pair_kernels(isa).along(a.data(), kRows, kDepth, left.data());
    pair_kernels(isa).down(b.data(), kDepth, kColumns, right.data());
    std::vector<float> c(kRows * kColumns, NAN);
    pairs_kernel(isa)({left.data(), right.data(),
                       c.data(),    kRows,
                       kColumns,    depth,
                       depth,       1,
                       kColumns,    1,
                       kColumns,    1,
                       false,       sum_block(depth, kSumBlock<float>),
                       nullptr,     0,
                       0,           0,
                       0,           nullptr});
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kColumns; ++j) {
        double sum = 0, size = 0;
        for (int64_t l = 0; l < kDepth; ++l) {
          const double term = to_bfloat16(a[static_cast<size_t>(i * kDepth + l)]) *
                              to_bfloat16(b[static_cast<size_t>(l * kColumns + j)]);
          sum += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(c[static_cast<size_t>(i * kColumns + j)], sum, 1e-6 * size);
      }
  }
}

}  // namespace
}  // namespace tenon_tests
