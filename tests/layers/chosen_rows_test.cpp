// Bodies that choose, overwrite and cut by values (tests/support/plugins/rows): where, scatter and dynamic slice are
// recorded with primitives that have derivatives, so the harness checks their gradients like those of any other layer.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr size_t kHeight = 4, kWidth = 3;

LayerCase case_of(const std::string& type, const std::vector<CheckedInput>& inputs) {
  LayerCase layer;
  layer.type = type;
  layer.inputs = inputs;
  layer.plugin_paths = {tenon_tests::test_plugin_folder() + "/layers"};
  return layer;
}

TEST(ChosenRows, Where) {
  LayerCase layer = case_of("test_where", {{{5}, 2}, {{5}}, {{5}}});
  layer.output_shape = {5};
  layer.formula = [](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[2];
    for (size_t i = 0; i < y.size(); ++i)
      if (a.inputs[0][i] != 0) y[i] = a.inputs[1][i];
    return y;
  };
  EXPECT_GT(check_layer(layer), 0);
}

TEST(ChosenRows, Overwrite) {
  LayerCase layer = case_of("test_overwrite", {{{kHeight, kWidth}}, {{}, kHeight}, {{kWidth}}});
  layer.output_shape = {kHeight, kWidth};
  layer.formula = [](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[0];
    for (size_t s = 0; s < a.inputs[1].size(); ++s)
      for (size_t k = 0; k < kWidth; ++k)
        y[(s * kHeight + static_cast<size_t>(a.inputs[1][s])) * kWidth + k] = a.inputs[2][s * kWidth + k];
    return y;
  };
  EXPECT_GT(check_layer(layer), 0);
}

TEST(ChosenRows, Window) {
  constexpr size_t kLength = 2;
  LayerCase layer = case_of("test_window", {{{kHeight, kWidth}}, {{}, kHeight}});
  layer.attributes = {{"length", static_cast<int64_t>(kLength)}};
  layer.output_shape = {kLength, kWidth};
  layer.formula = [](const FormulaArguments& a) {
    std::vector<double> y;
    for (size_t s = 0; s < a.inputs[1].size(); ++s) {
      const size_t start = std::min(static_cast<size_t>(a.inputs[1][s]), kHeight - kLength);
      for (size_t i = 0; i < kLength * kWidth; ++i) y.push_back(a.inputs[0][(s * kHeight + start) * kWidth + i]);
    }
    return y;
  };
  EXPECT_GT(check_layer(layer), 0);
}

}  // namespace
}  // namespace tenon_tests
