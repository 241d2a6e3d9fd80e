// The kernels of the device cpu have the same bits for every width of vectors: those of the definition where the order
// of a sum is one (docs/arithmetic.md), and of each other. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <tenon/program.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "conv/plane_kernels.h"
#include "gemm_tile.h"
#include "panel_memory.h"
#include "pointwise/kernels.h"

namespace tenon_tests {
namespace {

using tenon::cpu::Isa;

// The instruction sets of this processor, those without fused multiply-add left out where sums need it.
std::vector<Isa> sets(bool fused) {
  std::vector<Isa> result;
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512})
    if (isa <= tenon::cpu::detect_isa() && (isa > Isa::kBaseline || !fused)) result.push_back(isa);
  return result;
}

template <class T>
std::vector<T> numbers(int64_t count, uint64_t seed, double most = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-most, most);
  std::vector<T> result(static_cast<size_t>(count));
  for (T& number : result) number = static_cast<T>(uniform(random));
  return result;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Joins chains, the lower half with the upper half until one is left.
template <class T, class Join>
T folded(std::vector<T> chains, Join join) {
  for (size_t half = chains.size() / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) chains[i] = join(chains[i], chains[half + i]);
  return chains[0];
}

template <class T>
T defined_sum(const T* row, int64_t columns) {
  constexpr int64_t kChains = 128 / sizeof(T);
  std::vector<T> chains(kChains, T{0});
  for (int64_t i = 0; i < columns; ++i) chains[static_cast<size_t>(i % kChains)] += row[i];
  return folded(chains, [](T a, T b) { return a + b; });
}

template <class T>
void check_row_sums() {
  constexpr int64_t kRows = 5;
  for (const int64_t columns : {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 257, 1000}) {
    const auto from = numbers<T>(kRows * columns, static_cast<uint64_t>(columns));
    std::vector<T> expected;
    for (int64_t row = 0; row < kRows; ++row) expected.push_back(defined_sum(from.data() + row * columns, columns));
    for (const Isa isa : sets(false)) {
      std::vector<T> actual(kRows, T{7});
      const auto kernel = tenon::cpu::row_kernel(isa, sizeof(T) == 8, TN_OP_REDUCE_SUM, TN_FLOAT);
      ASSERT_NE(kernel, nullptr);
      kernel(actual.data(), from.data(), nullptr, nullptr, kRows, columns);
      EXPECT_TRUE(same_bits(actual, expected)) << columns << " columns, set " << static_cast<int>(isa);
    }
  }
}
TEST(Widths, SumsAlongRowsAreThoseOfTheDefinition) {
  check_row_sums<float>();
  check_row_sums<double>();
}

// Which zero a row of zeros gives, and where NaNs stand, does not follow from the width.
TEST(Widths, ExtremesOfZerosAndNaNs) {
  for (const int64_t columns : {2, 5, 16, 17, 40, 70})
    for (int64_t place = 0; place < columns; ++place)
      for (const uint16_t operation : {TN_OP_REDUCE_MAX, TN_OP_REDUCE_MIN, TN_OP_REDUCE_SUM})
        for (const float special : {0.0F, std::numeric_limits<float>::quiet_NaN()}) {
          std::vector<float> row(static_cast<size_t>(columns), -0.0F);
          row[static_cast<size_t>(place)] = special;
          std::vector<std::vector<float>> results;
          for (const Isa isa : sets(false)) {
            results.emplace_back(1);
            tenon::cpu::row_kernel(isa, false, operation, TN_FLOAT)(results.back().data(), row.data(), nullptr, nullptr,
                                                                    1, columns);
          }
          for (const auto& result : results) {
            ASSERT_EQ(std::isnan(result[0]), std::isnan(special));
            if (!std::isnan(special)) {
              ASSERT_TRUE(same_bits(result, results[0])) << operation << ", " << columns << " columns, " << place;
            }
          }
        }
}

// Sums of weights by planes: lane i of 64 bytes takes positions i, i + lanes, ... of each row, row after row.
template <class T>
void check_planes() {
  constexpr int64_t kFilters = 7, kTerms = 5, kRows = 3, kLanes = 64 / sizeof(T);
  for (const int64_t columns : {1, 7, 16, 17, 40}) {
    const int64_t line = (columns + kLanes - 1) / kLanes * kLanes, source_line = line + kTerms;
    auto target = numbers<T>(kFilters * kRows * line, 1);
    for (int64_t i = 0; i < kFilters * kRows * line; ++i)
      if (i % line >= columns) target[static_cast<size_t>(i)] = 0;
    const auto source = numbers<T>(kRows * source_line + kLanes, 2);
    const std::vector<int64_t> terms = {0, 1, 2, 3, 4};
    std::vector<T> expected;
    for (int64_t f = 0; f < kFilters; ++f)
      for (int64_t t = 0; t < kTerms; ++t) {
        std::vector<T> lanes(kLanes, T{0});
        for (int64_t row = 0; row < kRows; ++row)
          for (int64_t place = 0; place < line; ++place) {
            T& lane = lanes[static_cast<size_t>(place % kLanes)];
            lane = std::fma(target[static_cast<size_t>((f * kRows + row) * line + place)],
                            source[static_cast<size_t>(row * source_line + place + t)], lane);
          }
        expected.push_back(folded(lanes, [](T a, T b) { return a + b; }));
      }
    for (const Isa isa : sets(true)) {
      const tenon::cpu::PlaneKernels& kernels = tenon::cpu::plane_kernels(isa, sizeof(T) == 8);
      ASSERT_EQ(kernels.lanes, kLanes);
      std::vector<T> lanes(static_cast<size_t>(kFilters * kTerms * kLanes)), actual(kFilters * kTerms);
      tenon::cpu::PlanesBand work = {};
      work.band.source = source.data();
      work.band.target = target.data();
      work.band.rows = kRows;
      work.band.columns = columns;
      work.band.source_row = source_line;
      work.band.target_row = line;
      work.band.segments = terms.data();
      work.band.segments_count = kTerms;
      work.plane = kRows * line;
      work.sums = lanes.data();
      work.row = kTerms;
      work.width = kFilters;
      kernels.add(work);
      kernels.fold(lanes.data(), kFilters * kTerms, actual.data());
      EXPECT_TRUE(same_bits(actual, expected)) << columns << " columns, set " << static_cast<int>(isa);
    }
  }
}
TEST(Widths, SumsByPlanesAreThoseOfTheDefinition) {
  check_planes<float>();
  check_planes<double>();
}

// A tile of a product with a transposed A, of few columns and of many, which the widths cut into other vectors.
template <class T>
void check_tiles() {
  for (const int64_t columns : {2, 5, 8, 11, 33, 70})
    for (const bool add : {false, true}) {
      constexpr int64_t kRows = 45, kDepth = 700;
      const auto a = numbers<T>(kDepth * kRows, 1), b = numbers<T>(kDepth * columns, 2),
                 c = numbers<T>(kRows * columns, 3);
      std::vector<std::vector<T>> results;
      for (const Isa isa : sets(true)) {
        std::vector<T> panels(tenon::cpu::kPanelMemory / sizeof(T));
        results.push_back(c);
        tenon::cpu::GemmTile tile = {};
        tile.a = a.data();
        tile.b = b.data();
        tile.c = results.back().data();
        tile.rows = kRows;
        tile.columns = columns;
        tile.depth = kDepth;
        tile.a_row = 1;
        tile.a_step = kRows;
        tile.b_step = columns;
        tile.b_column = 1;
        tile.c_row = columns;
        tile.alpha = 0.5;
        tile.add = add;
        tile.block = tenon::cpu::sum_block(kDepth, tenon::cpu::kSumBlock<T>);
        tile.panels = panels.data();
        tenon::cpu::tile_kernel(isa, sizeof(T) == 8, false)(tile);
      }
      for (const auto& result : results)
        EXPECT_TRUE(same_bits(result, results[0])) << columns << " columns, add " << add;
    }
}
TEST(Widths, Products) {
  check_tiles<float>();
  check_tiles<double>();
}

template <class T>
void check_functions() {
  for (const uint16_t operation :
       {TN_OP_SQRT, TN_OP_EXP, TN_OP_EXPM1, TN_OP_LOG, TN_OP_LOG1P, TN_OP_TANH, TN_OP_ERF, TN_OP_SIN, TN_OP_COS})
    for (const double most : {1e-30, 1e-3, 1.0, 20.0, 1000.0, 1e6}) {
      const auto from = numbers<T>(1003, operation, most);
      std::vector<std::vector<T>> results;
      for (const Isa isa : sets(true)) {
        tenon::cpu::KernelKey key;
        key.isa = isa;
        key.wide = sizeof(T) == 8;
        key.operation = operation;
        key.kind = key.to = TN_FLOAT;
        const auto kernel = tenon::cpu::math_kernel(key);
        ASSERT_NE(kernel, nullptr) << operation;
        results.emplace_back(from.size());
        kernel(results.back().data(), from.data(), nullptr, nullptr, static_cast<int64_t>(from.size()), 0);
      }
      for (const auto& result : results)
        for (size_t i = 0; i < result.size(); ++i)
          ASSERT_TRUE(std::isnan(result[i]) ? std::isnan(results[0][i])
                                            : std::memcmp(&result[i], &results[0][i], sizeof(T)) == 0)
              << "function " << operation << " of " << from[i];
    }
}
TEST(Widths, Functions) {
  check_functions<float>();
  check_functions<double>();
}

}  // namespace
}  // namespace tenon_tests
