// A layer in pure C with native kernels only (sdk/templates/kernel/c), checked by the same harness as other layers.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

const std::string kTestLayers = tenon_tests::test_plugin_folder() + "/layers";

TEST(NativeKernel, PassesTheHarness) {
  LayerCase layer;
  layer.type = "example.my_plugin";
  layer.attributes = {{"decay", 0.75}};
  layer.inputs = {{{2, 3}}};
  layer.output_shape = {2, 3};
  layer.plugin_paths = {kTestLayers};
  layer.formula = [](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[0];
    for (size_t i = 0; i < y.size(); ++i) y[i] = 0.25 * y[i] + (i % 3 == 0 ? 0 : 0.75 * y[i - 1]);
    return y;
  };
  EXPECT_GT(check_layer(layer), 0);
}

TEST(NativeKernel, IsShownInThePlan) {
  const Host host(HostOptions{1, {tenon_tests::plugin_folder(), kTestLayers}, nullptr, {}});
  DataOptions data;
  data.name = "x";
  data.shape = {4};
  const Layer smoothed = host.layer("example.my_plugin", {host.data(data)}, {{"decay", 0.5}}, "smoothed");
  MachineOptions options;
  options.max_samples = 3;
  const Machine machine = host.machine(host.parameters({smoothed}, 1), {smoothed}, options);
  const nlohmann::json plan = nlohmann::json::parse(machine.plan());
  ASSERT_EQ(plan["calls"].size(), 1U);
  EXPECT_EQ(plan["calls"][0]["call"], "native");
  const std::vector<float> x = {1, 2, 3, 4};
  machine.forward({{"x", {TN_F32, {1, 4}, x.data()}}});
  const auto* y = static_cast<const float*>(machine.output(smoothed).data);
  EXPECT_EQ((std::vector<float>{y, y + 4}), (std::vector<float>{0.5, 1.25, 2.125, 3.0625}));
}

}  // namespace
}  // namespace tenon_tests
