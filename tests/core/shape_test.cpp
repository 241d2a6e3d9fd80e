// SPDX-License-Identifier: Apache-2.0
#include "core/shape.h"

#include <gtest/gtest.h>

namespace tenon_tests {

using namespace tenon::core;

namespace {

TEST(DlpackType, IsOneElementOfTheType) {
  for (const auto& [dtype, code, bits] :
       {std::tuple(TN_F32, kDLFloat, 32), {TN_F64, kDLFloat, 64}, {TN_I64, kDLInt, 64}, {TN_U8, kDLUInt, 8}}) {
    const DLDataType type = dlpack_type(dtype);
    EXPECT_EQ(type.code, code);
    EXPECT_EQ(type.bits, bits);
    EXPECT_EQ(type.lanes, 1);
  }
}

}  // namespace
}  // namespace tenon_tests
