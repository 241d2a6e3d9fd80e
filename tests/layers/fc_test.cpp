// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// y[i, j] = sum_k x[i, k] w[k, j] + b[j]; x is flattened after the first dimension.
LayerCase fc(int64_t size, bool bias, const std::vector<int64_t>& shape) {
  LayerCase layer;
  layer.type = "fc";
  layer.attributes = {{"size", size}, {"bias", bias}};
  layer.inputs = {{shape}};
  layer.output_shape = {size};
  layer.formula = [size, bias](const FormulaArguments& a) {
    const std::vector<double>& x = a.inputs[0];
    const std::vector<double>& w = a.parameters.at("weight");
    const auto n = static_cast<size_t>(size);
    const size_t inner = w.size() / n;
    std::vector<double> y(static_cast<size_t>(a.samples) * n);
    for (size_t i = 0; i < static_cast<size_t>(a.samples); ++i)
      for (size_t j = 0; j < n; ++j) {
        double sum = bias ? a.parameters.at("bias")[j] : 0;
        for (size_t k = 0; k < inner; ++k) sum += x[i * inner + k] * w[k * n + j];
        y[i * n + j] = sum;
      }
    return y;
  };
  return layer;
}

TEST(Fc, WithBias) { EXPECT_GT(check_layer(fc(5, true, {7})), 0); }
TEST(Fc, WithoutBias) { EXPECT_GT(check_layer(fc(3, false, {4})), 0); }
TEST(Fc, FlattensItsInput) { EXPECT_GT(check_layer(fc(2, true, {3, 2, 2})), 0); }
TEST(Fc, OneToOne) { EXPECT_GT(check_layer(fc(1, true, {1})), 0); }

// Each place of the dimensions before axis is a row.
TEST(Fc, FromAnAxisOn) {
  const auto from = [](const std::vector<int64_t>& shape, int64_t axis, size_t rows, bool bias) {
    LayerCase layer = fc(3, bias, shape);
    layer.attributes.push_back({"axis", axis});
    const auto leading = axis < 0 ? static_cast<int64_t>(shape.size()) + axis : axis - 1;
    layer.output_shape.assign(shape.begin(), shape.begin() + leading);
    layer.output_shape.push_back(3);
    layer.formula = [formula = layer.formula, rows](FormulaArguments a) {
      a.samples *= static_cast<int64_t>(rows);
      return formula(a);
    };
    return layer;
  };
  EXPECT_GT(check_layer(from({4, 5}, -1, 4, true)), 0);
  EXPECT_GT(check_layer(from({2, 3, 5}, -1, 6, false)), 0);
  EXPECT_GT(check_layer(from({2, 3, 5}, 2, 2, true)), 0);
  EXPECT_GT(check_layer(from({2, 3}, 1, 1, true)), 0);
  EXPECT_GT(check_layer(on_rows(from({4, 5}, -1, 4, true))), 0);
}

TEST(Fc, RefusesOtherAxes) {
  const Host host(HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const Layer x = host.data({"x", TN_F32, {3, 4}}), y = host.data({"y", TN_F32, {2, 4}});
  const auto message = [&](const Layers& inputs, int64_t axis) -> std::string {
    try {
      (void)host.layer("fc", inputs, {{"size", 2}, {"axis", axis}}, "bad");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      return error.what();
    }
    return "no error";
  };
  for (const int64_t axis : {0, 3, -3})
    EXPECT_NE(message({x}, axis).find("has no axis " + std::to_string(axis)), std::string::npos);
  const std::string said = message({x, y}, -1);
  EXPECT_NE(said.find("[samples, 3, 4]"), std::string::npos) << said;
  EXPECT_NE(said.find("[samples, 2, 4]"), std::string::npos) << said;
}

TEST(Fc, WithoutBiasIsAProductAlone) {
  const Host host(HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const Layer y = host.layer("fc", {host.data({"x", TN_F32, {3}})}, {{"size", 2}, {"bias", false}});
  MachineOptions options;
  options.max_samples = 4;
  options.training = false;
  const auto plan = nlohmann::json::parse(host.machine(host.parameters({y}, 1), {y}, options).plan());
  ASSERT_EQ(plan.at("calls").size(), 1U) << plan.at("calls");
  EXPECT_EQ(plan.at("calls")[0].at("call"), "gemm");
  EXPECT_EQ(plan.at("calls")[0].at("outputs").size(), 1U) << "the product is copied";
}

TEST(Fc, OnRowsOfSequences) {
  for (const uint32_t levels : {1U, 2U}) {
    EXPECT_GT(check_layer(on_rows(fc(3, true, {2, 2}), levels)), 0);
    EXPECT_GT(check_long_sequences(on_rows(fc(3, true, {2, 2}), levels)), 0);
  }
}

// A sparse input is the same matrix without its zeros. With width 3 an id occurs several times in a sample.
TEST(Fc, OfSparseInput) {
  for (const int64_t width : {3, 9})
    for (const bool weighted : {true, false}) {
      LayerCase layer = fc(4, true, {width});
      layer.inputs[0].sparse = true;
      layer.inputs[0].weighted = weighted;
      EXPECT_GT(check_layer(layer), 0);
      EXPECT_GT(check_long_sequences(layer), 0);
      layer.attributes.push_back({"param.weight.sparse", false});  // with a dense gradient
      EXPECT_GT(check_layer(layer), 0);
    }
}

// y = x0 w0 + x1 w1 (+ b): each input has a weight of its own.
TEST(Fc, SeveralInputs) {
  for (const auto& [bias, sparse] : {std::pair{true, false}, {false, false}, {true, true}}) {
    LayerCase layer;
    layer.type = "fc";
    layer.attributes = {{"size", 3}, {"bias", bias}};
    layer.inputs = {{{4}}, {{2, 2}}, {{5}}};
    layer.inputs[2].sparse = sparse;
    layer.output_shape = {3};
    layer.formula = [bias = bias](const FormulaArguments& a) {
      const char* const suffixes[] = {"weight", "weight_1", "weight_2"};
      const size_t depths[] = {4, 4, 5};
      std::vector<double> y;
      for (size_t i = 0; i < static_cast<size_t>(a.samples); ++i)
        for (size_t j = 0; j < 3; ++j) {
          double sum = bias ? a.parameters.at("bias")[j] : 0;
          for (size_t x = 0; x < 3; ++x)
            for (size_t k = 0; k < depths[x]; ++k)
              sum += a.inputs[x][i * depths[x] + k] * a.parameters.at(suffixes[x])[k * 3 + j];
          y.push_back(sum);
        }
      return y;
    };
    EXPECT_GT(check_layer(layer), 0);
  }
}

TEST(Fc, TooManyInputsAreRefused) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  Layers inputs;
  for (int i = 0; i < 9; ++i) {
    DataOptions data;
    data.name = "x" + std::to_string(i);
    data.dtype = TN_F32;
    data.shape = {2};
    inputs.push_back(host.data(data));
  }
  try {
    (void)host.layer("fc", inputs, {{"size", 2}}, "wide");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_UNSUPPORTED);
    EXPECT_NE(std::string(error.what()).find("at most 8"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tenon_tests
