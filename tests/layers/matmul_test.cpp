// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// y = scale op(a) op(b) for each sample; a is [3, 5] and b [5, 4] after the transpositions.
LayerCase matmul(bool ta, bool tb, double scale) {
  LayerCase layer;
  layer.type = "matmul";
  layer.attributes = {{"transpose_a", ta}, {"transpose_b", tb}, {"scale", scale}};
  layer.inputs = {{ta ? std::vector<int64_t>{5, 3} : std::vector<int64_t>{3, 5}},
                  {tb ? std::vector<int64_t>{4, 5} : std::vector<int64_t>{5, 4}}};
  layer.output_shape = {3, 4};
  layer.formula = [=](const FormulaArguments& arguments) {
    std::vector<double> y;
    for (size_t s = 0; s < static_cast<size_t>(arguments.samples); ++s)
      for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 4; ++j) {
          double sum = 0;
          for (size_t k = 0; k < 5; ++k)
            sum += arguments.inputs[0][s * 15 + (ta ? k * 3 + i : i * 5 + k)] *
                   arguments.inputs[1][s * 20 + (tb ? j * 5 + k : k * 4 + j)];
          y.push_back(scale * sum);
        }
    return y;
  };
  return layer;
}

TEST(MatMul, Plain) { EXPECT_GT(check_layer(matmul(false, false, 1)), 0); }
TEST(MatMul, FirstTransposed) { EXPECT_GT(check_layer(matmul(true, false, 0.5)), 0); }
TEST(MatMul, SecondTransposed) { EXPECT_GT(check_layer(matmul(false, true, 2)), 0); }
TEST(MatMul, BothTransposed) { EXPECT_GT(check_layer(matmul(true, true, 1)), 0); }

TEST(MatMul, NamesBothShapesWhereTheyDoNotFit) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions a, b;
  a.name = "a", b.name = "b";
  a.dtype = b.dtype = TN_F32;
  a.shape = {3, 5}, b.shape = {4, 5};
  const auto expect = [&](bool transpose_a, bool transpose_b, const std::string& expected) {
    try {
      (void)host.layer("matmul", {host.data(a), host.data(b)},
                       {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}, "product");
      FAIL();
    } catch (const Error& error) {
      const std::string shapes = "(expected float " + expected + ", got float [samples, 4, 5])";
      EXPECT_NE(std::string(error.what()).find(shapes), std::string::npos) << error.what();
    }
  };
  expect(false, false, "[samples, 5, 5]");
  expect(true, false, "[samples, 3, 5]");
  expect(true, true, "[samples, 4, 3]");
}

}  // namespace
}  // namespace tenon_tests
