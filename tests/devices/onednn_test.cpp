// The provider "onednn" on the rows of cpu's own test, for every convolution that oneDNN offers, not only for those
// that the plugin chooses it for. SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <filesystem>

#include "choice.h"
#include "conv.h"
#include "tests/devices/conv_rows.h"

namespace tenon::onednn {

// In place of the plugin's choice by measurement.
bool is_faster(const Problem& /*problem*/) { return true; }

}  // namespace tenon::onednn

namespace tenon_tests {
namespace {

namespace fs = std::filesystem;

class OnednnConv : public ConvTable {
 protected:
  const tn_conv_table* table() override { return &tenon::onednn::conv_table; }
  void* object() override { return &library_; }
  bool offers(const ConvCase& c) override {
    tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
    const tn_status status = prepare(c, &prepared);
    EXPECT_TRUE(status == TN_OK || status == TN_UNSUPPORTED) << device_.message;
    if (status == TN_OK) prepared.destroy(prepared.binding);
    if (status == TN_OK) ++offered_;
    return status == TN_OK;
  }
  // oneDNN has kernels for at least so many of the calls in float32; none is in float64.
  void expect_offers(int least) const {
    if (__builtin_cpu_supports("avx2")) {
      EXPECT_GE(offered_, least);
    }
  }

  tenon::onednn::Library library_;
  int offered_ = 0;
};

TEST_F(OnednnConv, OneDimension) {
  check(one_dimension());
  expect_offers(8);
}
TEST_F(OnednnConv, TwoDimensions) {
  check(two_dimensions());
  expect_offers(15);
}
TEST_F(OnednnConv, ThreeDimensions) {
  check(three_dimensions());
  expect_offers(3);
}
TEST_F(OnednnConv, Depthwise) {
  check(depthwise());
  expect_offers(6);
}
TEST_F(OnednnConv, ManyBands) {
  check(many_bands());
  expect_offers(3);
}
TEST_F(OnednnConv, RandomWindows) {
  check(random_rows());
  expect_offers(30);
}

// More samples than a chunk of the sums of weights, with a rest.
TEST_F(OnednnConv, Chunks) {
  check({{window_of({{5, 3, 1, 1, 1}, {6, 3, 1, 1, 1}}), {151, 8, 16, 1}}});
  expect_offers(3);
}

TEST_F(OnednnConv, SamplesAreIndependent) {
  check_samples({window_of({{9, 3, 2, 1, 1}, {9, 3, 1, 1, 1}}), {7, 12, 20, 1}});
  check_samples({window_of({{20, 3, 1, 1, 1}, {40, 3, 1, 1, 1}}), {3, 48, 48, 1}});  // two bands
  check_samples({window_of({{9, 1}, {9, 1}}), {5, 24, 40, 1}});
  check_samples({window_of({{9, 3, 1, 1, 1}, {9, 3, 1, 1, 1}}), {5, 24, 24, 24}});
  expect_offers(6);
}

TEST_F(OnednnConv, WithoutSamples) {
  check_without_samples({window_of({{4, 3}}), {0, 8, 8, 1}});
  expect_offers(3);
}

TEST_F(OnednnConv, Refuses) {
  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  ConvCase c = {window_of({{8, 3}, {8, 3}}), {1, 16, 16, 1}};
  c.dtype = TN_F64;
  EXPECT_EQ(prepare(c, &prepared), TN_UNSUPPORTED);
  EXPECT_EQ(device_.message, "oneDNN convolves float32 only");
  c.dtype = TN_F32;
  c.op = 3;
  EXPECT_EQ(prepare(c, &prepared), TN_UNSUPPORTED);
  c.op = TN_CONV_RESULTS;
  if (offers(c)) check_wrong_calls(c);
}

// The caller's number of OpenMP threads stays, and neither a prepare nor a run starts threads.
TEST_F(OnednnConv, KeepsOpenMpSettings) {
  const auto threads = [] {
    return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
  };
  library_.omp_set_num_threads(3);
  const auto before = threads();
  check({{window_of({{8, 3, 1, 1, 1}, {8, 3, 1, 1, 1}}), {20, 16, 16, 1}}});
  EXPECT_EQ(library_.omp_get_max_threads(), 3);
  EXPECT_EQ(threads(), before);
}

// The plugin itself, with its choice: on processors with AVX2 and without AVX-512 it takes what was measured to be
// faster, elsewhere nothing; for any number of samples.
class OnednnPlugin : public OnednnConv {
 protected:
  const tn_conv_table* table() override { return static_cast<const tn_conv_table*>(provider_->table); }

  static const tn_provider* built_provider() {
    void* const file = dlopen((plugin_folder() + "/devices/onednn.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (file == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<tn_entry>(dlsym(file, TN_ENTRY_NAME))()->providers[0];
  }

  const tn_provider* provider_ = built_provider();
};

TEST_F(OnednnPlugin, TakesWhatItIsFasterFor) {
  const bool measured =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !__builtin_cpu_supports("avx512f");
  for (const int64_t samples : {1, 200}) {
    const auto square = [&](int64_t size, int64_t kernel, const reference::ImageSizes& sizes, int32_t op) {
      return offers(
          {window_of({{size, kernel}, {size, kernel}}), {samples, sizes.channels, sizes.filters, sizes.groups}, op});
    };
    EXPECT_EQ(square(14, 3, {1, 32, 32, 32}, TN_CONV_RESULTS), measured) << "a filter for each channel";
    EXPECT_EQ(square(14, 3, {1, 32, 32, 32}, TN_CONV_WEIGHTS), measured);
    EXPECT_FALSE(square(14, 5, {1, 32, 32, 32}, TN_CONV_WEIGHTS));
    EXPECT_EQ(square(14, 1, {1, 32, 64, 1}, TN_CONV_RESULTS), measured) << "a kernel of one element";
    EXPECT_FALSE(square(14, 1, {1, 128, 64, 1}, TN_CONV_RESULTS));
    EXPECT_EQ(square(14, 1, {1, 128, 64, 1}, TN_CONV_IMAGES), measured);
    EXPECT_FALSE(square(14, 1, {1, 16, 16, 1}, TN_CONV_WEIGHTS));
    EXPECT_EQ(square(14, 3, {1, 3, 32, 1}, TN_CONV_WEIGHTS), measured) << "few channels";
    EXPECT_FALSE(square(14, 3, {1, 16, 32, 1}, TN_CONV_RESULTS));
    EXPECT_EQ(device_.message, "the device cpu itself is faster for images of this shape");
    EXPECT_FALSE(square(14, 3, {1, 16, 32, 1}, TN_CONV_IMAGES));
    EXPECT_FALSE(square(14, 3, {1, 16, 32, 1}, TN_CONV_WEIGHTS));
  }
}

}  // namespace
}  // namespace tenon_tests
