// SPDX-License-Identifier: Apache-2.0
#include "core/shape.h"

#include <gtest/gtest.h>

#include "core/error.h"

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

TEST(Storage, IsThatOfPackedElements) {
  for (const uint32_t bits : {1u, 2u, 4u, 6u, 8u, 16u, 32u, 64u})
    for (uint64_t elements = 0; elements < 70; ++elements) {
      const tn_dtype dtype = TN_DTYPE(1, bits);
      const uint64_t bytes = (elements * bits + 7) / 8;
      EXPECT_EQ(tn_dtype_storage(dtype, elements), bytes) << bits << " bits, " << elements << " elements";
      EXPECT_EQ(storage_bytes(dtype, elements, "it"), bytes);
    }
  // Nothing overflows on the way to a result that does not.
  EXPECT_EQ(tn_dtype_storage(TN_DTYPE(0, 4), UINT64_MAX), uint64_t{1} << 63);
  EXPECT_EQ(tn_dtype_storage(TN_F64, uint64_t{1} << 60), uint64_t{1} << 63);
}

TEST(Storage, ThatOverflowsIsRefused) {
  EXPECT_EQ(storage_bytes(TN_DTYPE(0, 1), uint64_t{1} << 63, "it"), uint64_t{1} << 60);
  for (const tn_dtype dtype : {TN_F64, TN_F32, TN_DTYPE(0, 16)}) {
    try {
      (void)storage_bytes(dtype, UINT64_MAX, "the tensor");
      ADD_FAILURE() << dtype_name(dtype);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      EXPECT_NE(error.message().find("the tensor"), std::string::npos) << error.message();
    }
  }
}

TEST(Storage, OfLessThanAByteHasNoBytesForEachElement) {
  for (const uint32_t bits : {1u, 2u, 4u, 7u}) {
    EXPECT_EQ(tn_dtype_bytes(TN_DTYPE(0, bits)), 0u);
    EXPECT_FALSE(has_whole_bytes(TN_DTYPE(0, bits)));
  }
  EXPECT_EQ(tn_dtype_bytes(TN_BOOL), 1u);
  for (const tn_dtype dtype : {TN_COMPUTE, TN_BOOL, TN_I8, TN_F16, TN_F64}) EXPECT_TRUE(has_whole_bytes(dtype));
}

TEST(DtypeName, AlsoNamesTypesThatAreNotStored) {
  EXPECT_EQ(dtype_name(TN_DTYPE(0, 4)), "int4");
  EXPECT_EQ(dtype_name(TN_DTYPE(1, 1)), "uint1");
  EXPECT_EQ(dtype_name(TN_DTYPE(2, 128)), "float128");
  EXPECT_EQ(dtype_name(TN_F32), "float32");
  EXPECT_EQ(dtype_name(TN_DTYPE(3, 64)), "dtype(code 3, bits 64)");  // kDLOpaqueHandle
  EXPECT_EQ(dtype_name(TN_DTYPE(9, 8)), "dtype(code 9, bits 8)");
  EXPECT_EQ(dtype_name(TN_F32 + (1u << 16)), "dtype(code 2, bits 32, lanes 2)");
}

}  // namespace
}  // namespace tenon_tests
