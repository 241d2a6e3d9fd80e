// Trainings on threads with small stacks: kernels have their large buffers elsewhere.
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/small_stack.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {
namespace {

using namespace tenon;

constexpr size_t kDevice = size_t{64} << 10;    // what the device needs
constexpr size_t kKernels = size_t{128} << 10;  // and native kernels of layers

class SmallStack : public testing::TestWithParam<tn_dtype> {
 protected:
  SmallStack() : host_({2, {plugin_folder()}, nullptr, {}}) {}

  [[nodiscard]] Layer data(const std::string& name, std::vector<int64_t> shape) const {
    DataOptions options;
    options.name = name, options.shape = std::move(shape);
    return host_.data(options);
  }
  // Forward and backward of the sum of a layer's output.
  void train(const Layer& made, int64_t samples, int64_t elements) const {
    const Layer cost = host_.layer("sum_cost", {made}, {}, "cost");
    MachineOptions options;
    options.max_samples = samples, options.training = true, options.compute = GetParam();
    const Machine machine = host_.machine(host_.parameters({cost}, 1), {cost}, options);
    const std::vector<float> values(static_cast<size_t>(samples * elements), 0.25F);
    std::vector<int64_t> shape = {samples};
    for (const int64_t size : shape_) shape.push_back(size);
    for (int i = 0; i < 2; ++i) {
      machine.forward({{"x", {TN_F32, shape, values.data()}}});
      machine.backward();
    }
  }
  std::vector<int64_t> shape_;  // of a sample of x
  Host host_;
};

// Products whose B is copied in panels: many rows, or transposed factors in backward.
TEST_P(SmallStack, Products) {
  shape_ = {300};
  EXPECT_EQ(on_a_stack(kDevice,
                       [&] {
                         const Layer x = data("x", {300});
                         const Layer h = host_.layer("fc", {x}, {{"size", 700}, {"act", "relu"}}, "h");
                         train(host_.layer("fc", {h}, {{"size", 90}}, "y"), 128, 300);
                         train(host_.layer("fc", {h}, {{"size", 90}}, "y"), 3, 300);
                       }),
            "");
}

TEST_P(SmallStack, Convolutions) {
  shape_ = {20, 20, 3};
  EXPECT_EQ(
      on_a_stack(
          kDevice,
          [&] {
            const Layer x = data("x", {20, 20, 3});
            const Layer conv = host_.layer("conv", {x}, {{"filters", 20}, {"kernel", 5}, {"act", "relu"}}, "conv");
            const Layer wide = host_.layer("conv", {conv}, {{"filters", 40}, {"kernel", 3}, {"stride", 2}}, "wide");
            const Layer pool = host_.layer("pool", {wide}, {{"kind", "max"}, {"kernel", 2}}, "pool");
            train(host_.layer("batch_norm", {pool}, {}, "normal"), 16, 1200);
          }),
      "");
}

TEST_P(SmallStack, AttentionAndPointwise) {
  shape_ = {40, 64};
  EXPECT_EQ(
      on_a_stack(kKernels,
                 [&] {
                   const Layer x = data("x", {40, 64});
                   const Layer att = host_.layer("multi_head_attention", {x}, {{"heads", 4}, {"causal", true}}, "att");
                   const Layer normal = host_.layer("layer_norm", {host_.layer("add", {x, att})}, {}, "normal");
                   const Layer sorted = host_.layer("sort", {host_.layer("gelu", {normal})}, {}, "sorted");
                   train(host_.layer("softmax", {sorted}, {}, "share"), 8, 2560);
                 }),
      "");
}

INSTANTIATE_TEST_SUITE_P(Types, SmallStack, testing::Values(TN_F32, TN_F64, TN_BF16), [](const auto& tested) {
  return tested.param == TN_F32 ? "float32" : tested.param == TN_F64 ? "float64" : "bf16";
});

}  // namespace
}  // namespace tenon_tests
