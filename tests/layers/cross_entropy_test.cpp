// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/layer_check.h"

namespace tenon::test {
namespace {

LayerCase cross_entropy(bool from_logits, int64_t classes) {
  LayerCase layer;
  layer.type = "cross_entropy";
  layer.attributes = {{"from_logits", from_logits}};
  layer.inputs = {{{classes}, 0, from_logits ? -5.0 : 0.1, from_logits ? 5.0 : 0.9}, {{}, classes}};
  layer.cost = true;
  layer.formula = [=](const FormulaArguments& a) {
    const auto n = static_cast<size_t>(classes);
    std::vector<double> cost(static_cast<size_t>(a.samples));
    for (size_t i = 0; i < cost.size(); ++i) {
      const double* x = a.inputs[0].data() + i * n;
      const auto label = static_cast<size_t>(a.inputs[1][i]);
      double sum = 0;
      for (size_t k = 0; k < n; ++k) sum += std::exp(x[k]);
      cost[i] = from_logits ? std::log(sum) - x[label] : -std::log(x[label]);
    }
    return cost;
  };
  return layer;
}

TEST(CrossEntropy, OfProbabilities) { EXPECT_GT(check_layer(cross_entropy(false, 10)), 0); }
TEST(CrossEntropy, FromLogits) { EXPECT_GT(check_layer(cross_entropy(true, 10)), 0); }
TEST(CrossEntropy, ManyClasses) { EXPECT_GT(check_layer(cross_entropy(true, 1000)), 0); }

}  // namespace
}  // namespace tenon::test
