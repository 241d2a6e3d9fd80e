// Products on the matrix instructions of AMX, and factors in their form. SPDX-License-Identifier: Apache-2.0
#include "matrix_tile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "bf16_pairs.h"
#include "tests/devices/gemm_reference.h"

namespace tenon_tests {
namespace {

using namespace tenon::cpu;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

// A matrix of random numbers, of `rows` and `columns`, stored turned or not.
struct Matrix {
  Matrix(int64_t m, int64_t n, bool is_turned, uint64_t seed)
      : rows(m), columns(n), turned(is_turned), numbers(static_cast<size_t>(m * n)) {
    std::mt19937_64 random(seed);
    for (float& number : numbers) {
      number = static_cast<float>(std::uniform_real_distribution<>(-3, 3)(random));
      rounded.push_back(static_cast<float>(to_bfloat16(number)));
    }
  }
  [[nodiscard]] float at(int64_t i, int64_t j) const {
    if (i >= rows || j >= columns) return 0;
    return rounded[static_cast<size_t>(turned ? j * rows + i : i * columns + j)];
  }
  [[nodiscard]] MatrixPart part() const { return {numbers.data(), turned ? rows : columns, rows, columns, turned}; }

  int64_t rows, columns;
  bool turned;
  std::vector<float> numbers, rounded;
};

class MatrixTiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_matrix_tiles()) GTEST_SKIP() << "no AMX on this machine";
    panel_ = panel_columns(Isa::kAvx512, false);
  }

  // Numbers of `count` pairs, at a cache line.
  uint32_t* pairs(int64_t count) {
    const size_t bytes = (static_cast<size_t>(count) * sizeof(uint32_t) + 127) / 64 * 64;
    memory_.emplace_back(std::aligned_alloc(64, bytes));
    std::memset(memory_.back().get(), 0xff, bytes);  // NaN
    return static_cast<uint32_t*>(memory_.back().get());
  }
  static float number(const uint32_t* pair, bool upper) {
    const uint32_t bits = upper ? *pair & 0xffff0000 : *pair << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  // alpha A B, or added to C, on tiles of A's rows [0, rows).
  std::vector<float> product(const Matrix& a, const Matrix& b, float alpha, bool add, int64_t rows,
                             std::vector<float> c) {
    const int64_t depth = pairs_of(a.columns), row = matrix_row(depth), columns = b.columns;
    const int64_t block = sum_block(depth, kMatrixBlock, kMatrixStep);
    const int64_t packed = (columns + panel_ - 1) / panel_ * panel_;
    uint32_t* const left = pairs(a.rows * row);
    uint32_t* const right = pairs(packed * depth);
    round_matrix_rows(a.part(), left, row);
    for (int64_t l = 0; l < depth; l += block) {
      MatrixPart part = b.part();
      part.from += 2 * l * (b.turned ? 1 : part.row);
      part.rows = std::min(2 * block, b.rows - 2 * l);
      round_matrix_panels(part, right + l * packed, pairs_of(part.rows) * panel_);
    }
    multiply_matrix_tile({left,    right, c.data(), rows,  columns, depth,  row, 1, columns, 1,
                          columns, alpha, add,      block, nullptr, packed, 0,   0, 0,       nullptr});
    return c;
  }

  int64_t panel_ = 0;
  std::vector<std::unique_ptr<void, Free>> memory_;
};

TEST_F(MatrixTiles, FactorsAreTheNearestNumbers) {
  for (const bool turned : {false, true})
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{37, 101}, {1, 1}, {16, 32}, {70, 7}}) {
      const Matrix m(rows, columns, turned, 1);
      const int64_t row = matrix_row(pairs_of(columns));
      const uint32_t* const along = pairs(rows * row);
      round_matrix_rows(m.part(), const_cast<uint32_t*>(along), row);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < 2 * pairs_of(columns); ++j)
          ASSERT_EQ(number(along + i * row + j / 2, j % 2 != 0), m.at(i, j)) << i << ", " << j;
      const int64_t distance = pairs_of(rows) * panel_, panels = (columns + panel_ - 1) / panel_;
      const uint32_t* const down = pairs(panels * distance);
      round_matrix_panels(m.part(), const_cast<uint32_t*>(down), distance);
      for (int64_t i = 0; i < 2 * pairs_of(rows); ++i)
        for (int64_t j = 0; j < panels * panel_; ++j)
          ASSERT_EQ(number(down + j / panel_ * distance + i / 2 * panel_ + j % panel_, i % 2 != 0), m.at(i, j))
              << i << ", " << j;
    }
}

TEST_F(MatrixTiles, ProductsAreSumsOfRoundedFactors) {
  constexpr int64_t kSizes[][3] = {{1, 1, 1},    {16, 48, 32},  {31, 47, 33},    {32, 96, 1024},
                                   {33, 49, 31}, {5, 200, 100}, {37, 100, 2101}, {17, 10, 3000}};
  for (const auto& [m, n, k] : kSizes)
    for (const bool turned : {false, true})
      for (const float alpha : {1.0F, -0.5F})
        for (const bool add : {false, true}) {
          const Matrix a(m, k, turned, 1), b(k, n, !turned, 2);
          const std::vector<float> before(static_cast<size_t>(m * n), add ? 2.5F : NAN);
          const std::vector<float> c = product(a, b, alpha, add, m, before);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              double sum = 0, size = 1;
              for (int64_t l = 0; l < k; ++l) {
                const double term = static_cast<double>(a.at(i, l)) * b.at(l, j);
                sum += term;
                size += std::fabs(term);
              }
              ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], alpha * sum + (add ? 2.5 : 0), 1e-6 * size)
                  << m << " x " << n << " x " << k << ": " << i << ", " << j;
            }
        }
}

// What a row gives depends neither on the number of rows nor on the tiles.
TEST_F(MatrixTiles, RowsDoNotDependOnEachOther) {
  const Matrix a(70, 1200, false, 1), b(1200, 100, false, 2);
  const std::vector<float> before(70 * 100, 1.5F);
  for (const float alpha : {1.0F, 0.3F}) {
    const std::vector<float> whole = product(a, b, alpha, true, 70, before);
    for (const int64_t rows : {1, 7, 16, 17, 31, 33, 64}) {
      const std::vector<float> c = product(a, b, alpha, true, rows, before);
      EXPECT_TRUE(std::equal(c.begin(), c.begin() + rows * 100, whole.begin())) << rows;
      EXPECT_TRUE(std::all_of(c.begin() + rows * 100, c.end(), [](float value) { return value == 1.5F; })) << rows;
    }
  }
}

}  // namespace
}  // namespace tenon_tests
