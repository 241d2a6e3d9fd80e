// Sums of row-sparse gradients in memory of the host. SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/row_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tenon_tests {

namespace {

using namespace tenon::host;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kRowBytes = 2 * sizeof(float);

using Numbers = std::vector<float>;

RowTerms borrowed(std::vector<int64_t> ids, const Numbers& numbers) {
  RowTerms rows;
  rows.ids = std::move(ids);
  rows.values = std::as_bytes(std::span(numbers));
  return rows;
}

RowTerms owned(std::vector<int64_t> ids, const Numbers& numbers) {
  RowTerms rows = borrowed(std::move(ids), {});
  const auto bytes = std::as_bytes(std::span(numbers));
  std::copy(bytes.begin(), bytes.end(), rows.allocate(bytes.size()));
  return rows;
}

Numbers numbers_of(const RowTerms& rows) {
  Numbers numbers(rows.values.size() / sizeof(float));
  std::copy(rows.values.begin(), rows.values.end(), std::as_writable_bytes(std::span(numbers)).begin());
  return numbers;
}

TEST(RowTerms, RowsOfTheSameIdAreAddedAndOthersComeBehind) {
  const Numbers first = {1, 2, 3, 4}, second = {10, 20, -0.0F, 40, 50, 60};
  for (const bool is_owned : {false, true}) {
    RowTerms to = is_owned ? owned({7, 3}, first) : borrowed({7, 3}, first);
    RowTerms from = borrowed({3, 9, 1}, second);
    add_rows(TN_F32, to, from, kRowBytes);
    EXPECT_THAT(to.ids, ElementsAre(7, 3, 9, 1));
    EXPECT_THAT(numbers_of(to), ElementsAre(1, 2, 13, 24, -0.0F, 40, 50, 60));
    EXPECT_TRUE(std::signbit(numbers_of(to)[4]));  // as it is, not added to 0
    EXPECT_THAT(first, ElementsAre(1, 2, 3, 4));   // what is borrowed stays
  }
}

TEST(RowTerms, NoRowsAreTheSumWithoutThem) {
  const Numbers numbers = {1, 2};
  for (const bool is_first : {false, true}) {
    RowTerms to = is_first ? borrowed({5}, numbers) : RowTerms();
    RowTerms from = is_first ? RowTerms() : borrowed({5}, numbers);
    add_rows(TN_F32, to, from, kRowBytes);
    EXPECT_THAT(to.ids, ElementsAre(5));
    EXPECT_THAT(numbers_of(to), ElementsAre(1, 2));
  }
  RowTerms to, from;
  add_rows(TN_F32, to, from, kRowBytes);
  EXPECT_THAT(to.ids, IsEmpty());
  EXPECT_THAT(to.values, IsEmpty());
}

TEST(RowTerms, ManyRowsAreFound) {
  constexpr int64_t kRows = 1001;
  Numbers numbers(2 * kRows);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  std::vector<int64_t> ids(kRows), others(kRows);
  for (int64_t i = 0; i < kRows; ++i) {
    ids[static_cast<size_t>(i)] = i * 256;  // as the rows of one block
    others[static_cast<size_t>(i)] = (kRows - 1 - i) * 256 + i % 2;
  }
  RowTerms to = borrowed(ids, numbers), from = borrowed(others, numbers);
  add_rows(TN_F32, to, from, kRowBytes);
  const Numbers sums = numbers_of(to);
  ASSERT_EQ(to.ids.size(), 1501U);
  for (size_t i = 0; i < 1001; ++i) {
    const size_t other = 1000 - i;
    EXPECT_EQ(sums[2 * i], numbers[2 * i] + (other % 2 == 0 ? numbers[2 * other] : 0)) << i;
  }
  for (size_t i = 0; i < 500; ++i) EXPECT_EQ(sums[2 * (1001 + i)], numbers[2 * (2 * i + 1)]) << i;
}

}  // namespace

}  // namespace tenon_tests
