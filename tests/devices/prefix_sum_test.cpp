// Prefix sums, against their definition. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/prepared_call.h"

namespace tenon_tests {
namespace {

struct Case {
  int64_t rows = 1, columns = 1;
  tn_dtype dtype = TN_F32;
  uint32_t flags = 0;
};

class PrefixSumTable : public testing::Test {
 protected:
  tn_status prepare(const Case& c, tn_prepared* prepared) {
    const tn_prefix_sum site = {
        sizeof site, c.dtype, c.flags, 0, bounded_symbol(TN_SYMBOL_SAMPLES, c.rows), tn_dim_constant(c.columns)};
    return device_.table<tn_prefix_sum_table>(TN_PREFIX_SUM)
        ->prepare(device_.device(), device_.services(), device_.errors(), &site, prepared);
  }

  // Runs the call on an output that holds `initial`.
  std::vector<double> sums(const Case& c, const std::vector<double>& from, uint8_t request, int32_t workers,
                           double initial = 0) {
    PreparedCall call(device_);
    EXPECT_EQ(prepare(c, &call.prepared), TN_OK) << device_.message;
    Guarded in = write_all(c.dtype, from), out = write_all(c.dtype, std::vector<double>(from.size(), initial));
    EXPECT_EQ(call.run({&in}, {&out}, {request}, {0, c.rows}, workers), TN_OK) << device_.message;
    EXPECT_TRUE(in.intact() && out.intact());
    return read_all(c.dtype, out);
  }

  DeviceUnderTest device_;
};

// Whether element j is in the sum of element i.
bool adds(uint32_t flags, int64_t i, int64_t j) {
  if (i == j) return (flags & TN_SUM_EXCLUSIVE) == 0;
  return (flags & TN_SUM_REVERSE) != 0 ? j > i : j < i;
}

TEST_F(PrefixSumTable, EveryDirection) {
  std::mt19937_64 random(5);
  for (const int64_t rows : {0, 1, 3, 200})
    for (const int64_t columns : {0, 1, 2, 7, 100})
      for (const tn_dtype dtype : {TN_F32, TN_F64})
        for (uint32_t flags = 0; flags < 4; ++flags) {
          std::vector<double> from(static_cast<size_t>(rows * columns)), want(from.size());
          for (double& x : from) x = static_cast<double>(random() % 64) / 8 - 4;  // sums are exact
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t i = 0; i < columns; ++i)
              for (int64_t j = 0; j < columns; ++j)
                if (adds(flags, i, j))
                  want[static_cast<size_t>(r * columns + i)] += from[static_cast<size_t>(r * columns + j)];
          for (const int32_t workers : device_.workers({1, 2, 8})) {
            const Case c = {rows, columns, dtype, flags};
            ASSERT_EQ(sums(c, from, TN_REQUEST_WRITE, workers, 99), want) << rows << ", " << columns << ", " << flags;
            std::vector<double> more = want;
            for (double& x : more) x += 2;
            ASSERT_EQ(sums(c, from, TN_REQUEST_ADD, workers, 2), more) << rows << ", " << columns << ", " << flags;
          }
        }
}

// Rows that a device sums in pieces. The sums are exact.
TEST_F(PrefixSumTable, LongRows) {
  std::mt19937_64 random(6);
  for (const uint32_t flags : {0U, uint32_t{TN_SUM_REVERSE}}) {
    const Case c = {5, 3000, TN_F32, flags};
    std::vector<double> from(static_cast<size_t>(c.rows * c.columns)), want(from.size());
    for (double& x : from) x = static_cast<double>(random() % 64) / 8 - 4;
    for (int64_t r = 0; r < c.rows; ++r) {
      double sum = 0;
      for (int64_t k = 0; k < c.columns; ++k) {
        const auto at = static_cast<size_t>(r * c.columns + (flags != 0 ? c.columns - 1 - k : k));
        want[at] = sum += from[at];
      }
    }
    ASSERT_EQ(sums(c, from, TN_REQUEST_WRITE, 2), want) << flags;
  }
}

// 2^20 times 0.1: a sum in float32 would be wrong by a percent.
TEST_F(PrefixSumTable, LongRowsStayExact) {
  const int64_t columns = 1 << 20;
  const std::vector<double> from(static_cast<size_t>(columns), static_cast<double>(0.1F));
  const std::vector<double> got = sums({1, columns, TN_F32, 0}, from, TN_REQUEST_WRITE, 2);
  const double exact = static_cast<double>(0.1F) * static_cast<double>(columns);
  EXPECT_NEAR(got.back(), exact, 1e-7 * exact);
}

// What is not finite stays within its row and direction.
TEST_F(PrefixSumTable, NotFinite) {
  const std::vector<double> from = {1, INFINITY, 2, 1, 2, 3};
  const std::vector<double> up = sums({2, 3, TN_F32, 0}, from, TN_REQUEST_WRITE, 1);
  EXPECT_EQ(up, (std::vector<double>{1, INFINITY, INFINITY, 1, 3, 6}));
  const std::vector<double> down = sums({2, 3, TN_F32, 3}, from, TN_REQUEST_WRITE, 1);
  EXPECT_EQ(down, (std::vector<double>{INFINITY, 2, 0, 5, 3, 0}));
}

TEST_F(PrefixSumTable, Refuses) {
  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  EXPECT_EQ(prepare({1, 3, TN_I32, 0}, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(prepare({1, 3, TN_F32, 4}, &prepared), TN_UNSUPPORTED);
  PreparedCall call(device_);
  ASSERT_EQ(prepare({1, 3, TN_F32, 0}, &call.prepared), TN_OK);
  Guarded in = write_all(TN_F32, {1, 2, 3}), out = write_all(TN_F32, {7, 7, 7});
  const std::vector<uint8_t> before = out.bytes();
  EXPECT_EQ(call.run({&in}, {&out}, {TN_REQUEST_WRITE}, {0, -1}, 1), TN_MISUSE);
  EXPECT_EQ(call.run(std::vector<Guarded*>{nullptr}, {&out}, {TN_REQUEST_WRITE}, {0, 1}, 1), TN_MISUSE);
  EXPECT_EQ(call.run({&in}, {&out}, {TN_REQUEST_NONE}, {0, 1}, 1), TN_OK);
  EXPECT_TRUE(out.bytes() == before);
}

}  // namespace
}  // namespace tenon_tests
