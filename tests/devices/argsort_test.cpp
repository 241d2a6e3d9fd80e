// Positions in sorted order, against their definition. SPDX-License-Identifier: Apache-2.0
#include "tests/devices/prepared_call.h"

namespace tenon_tests {
namespace {

struct Case {
  int64_t rows = 1, columns = 1, count = 1;
  tn_dtype dtype = TN_F32;
  uint32_t flags = 0;
};

class ArgsortTable : public testing::Test {
 protected:
  tn_status prepare(const Case& c, tn_prepared* prepared) {
    const tn_argsort site = {sizeof site,
                             c.dtype,
                             c.flags,
                             0,
                             bounded_symbol(TN_SYMBOL_SAMPLES, c.rows),
                             tn_dim_constant(c.columns),
                             tn_dim_constant(c.count)};
    return device_.table<tn_argsort_table>(TN_ARGSORT)
        ->prepare(device_.device(), device_.services(), device_.errors(), &site, prepared);
  }

  std::vector<double> sorted(const Case& c, const std::vector<double>& from, int32_t workers) {
    PreparedCall call(device_);
    EXPECT_EQ(prepare(c, &call.prepared), TN_OK) << device_.message;
    Guarded in = write_all(c.dtype, from);
    const std::vector<uint8_t> before = in.bytes();
    Guarded out = write_all(TN_I64, std::vector<double>(static_cast<size_t>(c.rows * c.count), 99));
    EXPECT_EQ(call.run({&in}, {&out}, {TN_REQUEST_WRITE}, {0, c.rows}, workers), TN_OK) << device_.message;
    EXPECT_TRUE(in.intact() && out.intact() && in.bytes() == before);
    return read_all(TN_I64, out);
  }

  DeviceUnderTest device_;
};

// An element has the place of the number of elements before it. `from` has no NaN.
std::vector<double> defined(const Case& c, const std::vector<double>& from) {
  std::vector<double> out(static_cast<size_t>(c.rows * c.count), -1);
  for (int64_t r = 0; r < c.rows; ++r)
    for (int64_t i = 0; i < c.columns; ++i) {
      const auto at = [&](int64_t column) { return from[static_cast<size_t>(r * c.columns + column)]; };
      int64_t place = 0;
      for (int64_t j = 0; j < c.columns; ++j)
        place += (c.flags != 0 ? at(j) > at(i) : at(j) < at(i)) || (at(j) == at(i) && j < i) ? 1 : 0;
      if (place < c.count) out[static_cast<size_t>(r * c.count + place)] = static_cast<double>(i);
    }
  return out;
}

TEST_F(ArgsortTable, EveryCount) {
  std::mt19937_64 random(5);
  for (const int64_t rows : {0, 1, 3, 70})
    for (const int64_t columns : {0, 1, 2, 5, 33, 200})
      for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{2}, columns / 2, columns - 1, columns})
        for (const tn_dtype dtype : {TN_F32, TN_F64})
          for (const uint32_t flags : {0U, uint32_t{TN_SORT_DESCENDING}}) {
            if (count < 0 || count > columns) continue;
            const Case c = {rows, columns, count, dtype, flags};
            std::vector<double> from(static_cast<size_t>(rows * columns));
            for (double& x : from) x = static_cast<double>(random() % 32) / 8 - 2;  // many are equal
            const std::vector<double> want = defined(c, from);
            for (const int32_t workers : device_.workers({1, 2, 8}))
              ASSERT_EQ(sorted(c, from, workers), want)
                  << rows << " rows of " << columns << ", " << count << " positions, flags " << flags;
          }
}

// Rows that a device sorts in pieces.
TEST_F(ArgsortTable, LongRows) {
  std::mt19937_64 random(6);
  for (const uint32_t flags : {0U, uint32_t{TN_SORT_DESCENDING}}) {
    const Case c = {3, 2500, 2100, TN_F32, flags};
    std::vector<double> from(static_cast<size_t>(c.rows * c.columns));
    for (double& x : from) x = static_cast<double>(random() % 512) / 8;
    ASSERT_EQ(sorted(c, from, 2), defined(c, from)) << "flags " << flags;
  }
}

// Equal elements keep their order, zeros of both signs among them; NaN comes last either way.
TEST_F(ArgsortTable, TiesAndNan) {
  const std::vector<double> from = {NAN, 0.0, 3, -0.0, NAN, 3, INFINITY, -INFINITY};
  const std::vector<double> up = {7, 1, 3, 2, 5, 6, 0, 4}, down = {6, 2, 5, 1, 3, 7, 0, 4};
  for (const tn_dtype dtype : {TN_F32, TN_F64})
    for (const uint32_t flags : {0U, uint32_t{TN_SORT_DESCENDING}})
      for (int64_t count = 1; count <= 8; ++count) {
        std::vector<double> want = flags != 0 ? down : up;
        want.resize(static_cast<size_t>(count));
        EXPECT_EQ(sorted({1, 8, count, dtype, flags}, from, 1), want) << count << " positions, flags " << flags;
      }
}

TEST_F(ArgsortTable, Refuses) {
  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  EXPECT_EQ(prepare({1, 3, 3, TN_I32, 0}, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(prepare({1, 3, 3, TN_F32, 2}, &prepared), TN_UNSUPPORTED);
  PreparedCall call(device_), more(device_);
  ASSERT_EQ(prepare({1, 3, 3, TN_F32, 0}, &call.prepared), TN_OK);
  ASSERT_EQ(prepare({1, 3, 4, TN_F32, 0}, &more.prepared), TN_OK);
  Guarded in = write_all(TN_F32, {1, 2, 3}), out = write_all(TN_I64, {7, 7, 7});
  const std::vector<uint8_t> before = out.bytes();
  EXPECT_EQ(call.run({&in}, {&out}, {TN_REQUEST_ADD}, {0, 1}, 1), TN_UNSUPPORTED);
  EXPECT_EQ(call.run({&in}, {&out}, {TN_REQUEST_WRITE}, {0, -1}, 1), TN_MISUSE);
  EXPECT_EQ(more.run({&in}, {&out}, {TN_REQUEST_WRITE}, {0, 1}, 1), TN_MISUSE);
  EXPECT_EQ(call.run(std::vector<Guarded*>{nullptr}, {&out}, {TN_REQUEST_WRITE}, {0, 1}, 1), TN_MISUSE);
  EXPECT_EQ(call.run({&in}, {&out}, {TN_REQUEST_NONE}, {0, 1}, 1), TN_OK);
  EXPECT_TRUE(out.bytes() == before);
}

}  // namespace
}  // namespace tenon_tests
