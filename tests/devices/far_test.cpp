// The test device "far" itself: that it notices what a host does wrong. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/devices/prepared_call.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

class Far : public testing::Test {
 protected:
  [[nodiscard]] const tn_device_type& type() const { return *far_.type(); }
  [[nodiscard]] tn_status copy(int32_t kind, void* to, const void* from, uint64_t bytes) {
    const tn_copy what = {sizeof what, kind, nullptr, to, from, bytes};
    return type().copy(far_.device(), far_.errors(), &what);
  }
  [[nodiscard]] tn_status wait() { return type().stream_wait(far_.device(), far_.errors(), nullptr); }
  [[nodiscard]] int64_t* allocate() { return static_cast<int64_t*>(type().allocate(far_.device(), far_.errors(), 64)); }

  DeviceUnderTest far_{device_plugin("far")};
};

TEST_F(Far, MemoryFaultsWhenTheHostTouchesIt) {
  int64_t* const memory = allocate();
  EXPECT_DEATH(*memory = 1, "");
  EXPECT_DEATH(std::exit(static_cast<int>(*memory)), "");
  type().release(far_.device(), memory, 64);
}

TEST_F(Far, StreamsRunLate) {
  int64_t* const memory = allocate();
  int64_t written = 1, read = 0;
  ASSERT_EQ(copy(TN_COPY_TO_DEVICE, memory, &written, 8), TN_OK);
  ASSERT_EQ(copy(TN_COPY_TO_HOST, &read, memory, 8), TN_OK);
  EXPECT_EQ(read, 0) << "the copy did not wait";
  written = 2;  // too early
  ASSERT_EQ(wait(), TN_OK);
  EXPECT_EQ(read, 2);
  type().release(far_.device(), memory, 64);
}

TEST_F(Far, RefusesMemoryOfTheHost) {
  int64_t one = 1, other = 2;
  EXPECT_EQ(copy(TN_COPY_TO_DEVICE, &one, &other, 8), TN_INVALID);
  EXPECT_EQ(far_.message, "copy: to is not in the device's memory");
  EXPECT_EQ(copy(TN_COPY_ON_DEVICE, &one, &other, 8), TN_INVALID);
  int64_t* const memory = allocate();
  EXPECT_EQ(copy(TN_COPY_TO_DEVICE, memory, memory, 8), TN_INVALID);
  EXPECT_EQ(far_.message, "copy: from is in the device's memory");
  type().release(far_.device(), memory, 64);
}

TEST_F(Far, ProductsReadSizesOnTheHost) {
  const tn_gemm gemm = {sizeof gemm,
                        TN_F32,
                        tn_dim_constant(1),
                        tn_dim_symbol(TN_SYMBOL_SAMPLES),
                        tn_dim_constant(2),
                        tn_dim_constant(3),
                        0,
                        0,
                        1};
  tn_prepared prepared = {sizeof prepared, 0, nullptr, 0, nullptr, nullptr};
  const auto* const table = far_.table<tn_gemm_table>(TN_GEMM);
  ASSERT_EQ(table->prepare(far_.device(), far_.services(), far_.errors(), &gemm, &prepared), TN_OK);
  EXPECT_EQ(prepared.traits & TN_TRAIT_HOST_SIZES, TN_TRAIT_HOST_SIZES);
  EXPECT_EQ(prepared.traits & TN_TRAIT_CAPTURABLE, 0U);
  prepared.destroy(prepared.binding);
}

// Gathers 2 rows of width 1 by ids from a table of height 2; all in one block: symbols, random, table, ids, result.
class FarGather : public Far {
 protected:
  FarGather() : block_(static_cast<std::byte*>(type().allocate(far_.device(), far_.errors(), kBytes))) {
    const tn_gather gather = {
        sizeof gather,     TN_F64, TN_I64, TN_GATHER_ROWS, tn_dim_constant(2), tn_dim_constant(1), tn_dim_constant(2),
        tn_dim_constant(0)};
    EXPECT_EQ(far_.table<tn_gather_table>(TN_GATHER)->prepare(far_.device(), far_.services(), far_.errors(), &gather,
                                                              &prepared_),
              TN_OK);
  }
  ~FarGather() override {
    EXPECT_EQ(wait(), TN_OK);
    prepared_.destroy(prepared_.binding);
    type().release(far_.device(), block_, kBytes);
  }
  // Enqueues all; the result is in `got` after a wait.
  tn_status run(std::vector<int64_t> ids, const void* table) {
    staged_.push_back(std::move(ids));
    EXPECT_EQ(type().fill(far_.device(), far_.errors(), nullptr, block_, 0, kBytes), TN_OK);
    EXPECT_EQ(copy(TN_COPY_TO_DEVICE, block_ + 256, numbers_, sizeof numbers_), TN_OK);
    EXPECT_EQ(copy(TN_COPY_TO_DEVICE, block_ + 512, staged_.back().data(), 16), TN_OK);
    tn_tensor tensors[3] = {};
    const void* const data[] = {table, block_ + 512, block_ + 768};
    int64_t shapes[3][2] = {{2, 1}, {2, 1}, {2, 1}};
    for (int i = 0; i < 3; ++i) {
      tensors[i].size = sizeof tensors[i];
      tensors[i].dl.data = const_cast<void*>(data[i]);
      tensors[i].dl.ndim = i == 1 ? 1 : 2;
      tensors[i].dl.shape = shapes[i];
    }
    const tn_tensor* const in[] = {&tensors[0], &tensors[1]};
    tn_tensor* const out[] = {&tensors[2]};
    const uint8_t request = TN_REQUEST_WRITE;
    const tn_call call = {sizeof call, 2, 1, 0, in, out, &request, nullptr, 0};
    const tn_execution execution = {sizeof execution,
                                    0,
                                    far_.device(),
                                    nullptr,
                                    reinterpret_cast<int64_t*>(block_),
                                    reinterpret_cast<tn_random*>(block_ + 128),
                                    nullptr,
                                    far_.errors(),
                                    nullptr};
    const tn_status status = prepared_.run(prepared_.binding, &execution, &call);
    std::memset(tensors, 0x7f, sizeof tensors);  // the host may change its structs at once
    std::memset(shapes, 0x7f, sizeof shapes);
    EXPECT_EQ(copy(TN_COPY_TO_HOST, got_, block_ + 768, sizeof got_), TN_OK);
    return status;
  }

  static constexpr uint64_t kBytes = 1024;
  const double numbers_[2] = {0.5, 0.25};
  double got_[2] = {};
  std::byte* block_;
  tn_prepared prepared_ = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  std::vector<std::vector<int64_t>> staged_;
};

TEST_F(FarGather, ComputesLater) {
  ASSERT_EQ(run({1, 0}, block_ + 256), TN_OK);
  EXPECT_EQ(got_[0], 0);
  ASSERT_EQ(wait(), TN_OK);
  EXPECT_EQ(got_[0], 0.25);
  EXPECT_EQ(got_[1], 0.5);
}

TEST_F(FarGather, ReportsAFailureOnceAndDropsWhatFollows) {
  ASSERT_EQ(run({1, 7}, block_ + 256), TN_OK);
  EXPECT_EQ(wait(), TN_BAD_DATA);
  EXPECT_THAT(far_.message, HasSubstr("7"));
  EXPECT_EQ(got_[0], 0) << "work after the failure ran";
  EXPECT_EQ(wait(), TN_OK);
}

TEST_F(FarGather, NamesTheOperandInMemoryOfTheHost) {
  EXPECT_EQ(run({1, 0}, numbers_), TN_INVALID);
  EXPECT_EQ(far_.message, "input 0 is not in the device's memory");
}

}  // namespace

}  // namespace tenon_tests
