// Which types widen to which, and what becomes of every value. SPDX-License-Identifier: Apache-2.0
#include "host/machine/widening.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace tenon_tests {

using namespace tenon::host;

namespace {

TEST(Widening, OnlyWhereNoValueIsLost) {
  const std::vector<tn_dtype> all = {TN_I8,  TN_I16, TN_I32, TN_I64, TN_U8,   TN_U16,
                                     TN_U32, TN_F16, TN_F32, TN_F64, TN_BF16, TN_BOOL};
  const std::set<std::pair<tn_dtype, tn_dtype>> expected = {
      {TN_I8, TN_I16},  {TN_I8, TN_I32},  {TN_I8, TN_I64},  {TN_I8, TN_F32},  {TN_I8, TN_F64},  {TN_I16, TN_I32},
      {TN_I16, TN_I64}, {TN_I16, TN_F32}, {TN_I16, TN_F64}, {TN_I32, TN_I64}, {TN_I32, TN_F64}, {TN_U8, TN_U16},
      {TN_U8, TN_U32},  {TN_U8, TN_I16},  {TN_U8, TN_I32},  {TN_U8, TN_I64},  {TN_U8, TN_F32},  {TN_U8, TN_F64},
      {TN_U16, TN_U32}, {TN_U16, TN_I32}, {TN_U16, TN_I64}, {TN_U16, TN_F32}, {TN_U16, TN_F64}, {TN_U32, TN_I64},
      {TN_U32, TN_F64}, {TN_F32, TN_F64}};
  for (const tn_dtype from : all)
    for (const tn_dtype to : all) EXPECT_EQ(widens(from, to), expected.count({from, to}) == 1) << from << " " << to;
}

template <typename From, typename To>
void check_extremes(tn_dtype from, tn_dtype to) {
  const std::vector<From> values = {std::numeric_limits<From>::lowest(), From(0), From(1),
                                    std::numeric_limits<From>::max()};
  std::vector<To> out(values.size());
  copy_widened({from, {4}, values.data()}, to, reinterpret_cast<std::byte*>(out.data()));
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(static_cast<long double>(out[i]), static_cast<long double>(values[i])) << from << " to " << to;
}

template <typename From>
void check_from(tn_dtype from) {
  if (widens(from, TN_U16)) check_extremes<From, uint16_t>(from, TN_U16);
  if (widens(from, TN_I16)) check_extremes<From, int16_t>(from, TN_I16);
  if (widens(from, TN_U32)) check_extremes<From, uint32_t>(from, TN_U32);
  if (widens(from, TN_I32)) check_extremes<From, int32_t>(from, TN_I32);
  if (widens(from, TN_I64)) check_extremes<From, int64_t>(from, TN_I64);
  if (widens(from, TN_F32)) check_extremes<From, float>(from, TN_F32);
  if (widens(from, TN_F64)) check_extremes<From, double>(from, TN_F64);
}

TEST(Widening, KeepsEveryValue) {
  check_from<uint8_t>(TN_U8);
  check_from<int8_t>(TN_I8);
  check_from<uint16_t>(TN_U16);
  check_from<int16_t>(TN_I16);
  check_from<uint32_t>(TN_U32);
  check_from<int32_t>(TN_I32);
  check_from<float>(TN_F32);
}

TEST(Widening, FollowsStrides) {
  const std::vector<int16_t> memory = {1, -2, 3, -4, 5, -6};
  ArrayView columns{TN_I16, {3, 2}, memory.data()};
  columns.strides = {1, 3};
  std::vector<int64_t> out(6);
  copy_widened(columns, TN_I64, reinterpret_cast<std::byte*>(out.data()));
  EXPECT_EQ(out, (std::vector<int64_t>{1, -4, -2, 5, 3, -6}));
  std::vector<int16_t> same(6);
  copy_widened(columns, TN_I16, reinterpret_cast<std::byte*>(same.data()));
  EXPECT_EQ(same, (std::vector<int16_t>{1, -4, -2, 5, 3, -6}));
}

}  // namespace
}  // namespace tenon_tests
