// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "tests/support/layer_check.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// Normalises the last dimension; centred: layer_norm, else rms_norm. Applies the parameters that exist.
LayerCase norm(bool centred, const std::vector<int64_t>& shape, const Attributes& attributes, double epsilon = 1e-5) {
  LayerCase layer;
  layer.type = centred ? "layer_norm" : "rms_norm";
  layer.attributes = attributes;
  layer.inputs = {{shape}};
  layer.output_shape = shape;
  layer.gradient_rounded = 1e-3;  // the mean of the row and its length cancel
  layer.tolerance = 5e-6;         // fp32 rounds the mean before it is subtracted
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[0];
    const auto columns = static_cast<size_t>(shape.back());
    for (size_t row = 0; row < y.size(); row += columns) {
      double mean = 0, square = 0;
      for (size_t i = row; centred && i < row + columns; ++i) mean += y[i] / static_cast<double>(columns);
      for (size_t i = row; i < row + columns; ++i)
        square += (y[i] - mean) * (y[i] - mean) / static_cast<double>(columns);
      for (size_t i = row; i < row + columns; ++i) {
        y[i] = (y[i] - mean) / std::sqrt(square + epsilon);
        if (const auto scale = a.parameters.find("scale"); scale != a.parameters.end()) y[i] *= scale->second[i - row];
        if (const auto shift = a.parameters.find("shift"); shift != a.parameters.end()) y[i] += shift->second[i - row];
      }
    }
    return y;
  };
  return layer;
}

TEST(LayerNorm, OverTheLastDimension) {
  EXPECT_GT(check_layer(norm(true, {7}, {})), 0);
  EXPECT_GT(check_layer(norm(true, {3, 5}, {})), 0);
  EXPECT_GT(check_layer(norm(true, {5}, {{"learnable", false}})), 0);
  LayerCase wide = norm(true, {301}, {});
  wide.samples = {1, 3};
  EXPECT_GT(check_layer(wide), 0);
}
TEST(LayerNorm, Epsilon) { EXPECT_GT(check_layer(norm(true, {6}, {{"epsilon", 0.5}}, 0.5)), 0); }

TEST(LayerNorm, OnRowsOfSequences) { EXPECT_GT(check_layer(on_rows(norm(true, {6}, {}), 2)), 0); }

// Of columns of the rows of a minibatch: mean, and variance divided by the rows less `less`.
struct Statistics {
  std::vector<double> mean, variance;
};
Statistics statistics(const std::vector<double>& x, size_t features, double less) {
  Statistics s = {std::vector<double>(features), std::vector<double>(features)};
  const double rows = static_cast<double>(x.size()) / static_cast<double>(features);
  for (size_t i = 0; i < x.size(); ++i) s.mean[i % features] += x[i] / rows;
  for (size_t i = 0; i < x.size(); ++i)
    s.variance[i % features] += std::pow(x[i] - s.mean[i % features], 2) / std::max(rows - less, 1.0);
  return s;
}

LayerCase batch_norm(const std::vector<int64_t>& shape, const Attributes& attributes, double epsilon = 1e-5,
                     double momentum = 0.9) {
  LayerCase layer;
  layer.type = "batch_norm";
  layer.attributes = attributes;
  layer.inputs = {{shape}};
  layer.output_shape = shape;
  layer.couples_samples = true;
  layer.samples = {3, 7, 33};  // of two values the gradient is the difference of nearly equal numbers
  layer.gradient_rounded = 0.1;
  layer.tolerance = 5e-6;
  const auto features = static_cast<size_t>(shape.back());
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[0];
    const Statistics s = a.training ? statistics(y, features, 0)
                                    : Statistics{a.buffers.at("moving_mean"), a.buffers.at("moving_variance")};
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t k = i % features;
      y[i] = (y[i] - s.mean[k]) / std::sqrt(s.variance[k] + epsilon);
      if (a.parameters.contains("scale")) y[i] = y[i] * a.parameters.at("scale")[k] + a.parameters.at("shift")[k];
    }
    return y;
  };
  const auto moved = [=](const std::vector<double>& old, const std::vector<double>& made) {
    std::vector<double> next = old;
    for (size_t k = 0; k < next.size(); ++k) next[k] = momentum * old[k] + (1 - momentum) * made[k];
    return next;
  };
  layer.buffers["moving_mean"] = [=](const FormulaArguments& a) {
    return moved(a.buffers.at("moving_mean"), statistics(a.inputs[0], features, 0).mean);
  };
  layer.buffers["moving_variance"] = [=](const FormulaArguments& a) {
    return moved(a.buffers.at("moving_variance"), statistics(a.inputs[0], features, 1).variance);
  };
  return layer;
}

TEST(BatchNorm, OfFeatures) {
  EXPECT_GT(check_layer(batch_norm({5}, {})), 0);
  EXPECT_GT(check_layer(batch_norm({2, 3, 4}, {{"momentum", 0.5}, {"epsilon", 0.01}}, 0.01, 0.5)), 0);
  EXPECT_GT(check_layer(batch_norm({5}, {{"learnable", false}})), 0);
}
// In training and in inference, and a step leaves the buffers.
TEST(BatchNorm, FrozenUsesItsBuffers) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32, data.shape = {2};
  const Layer y = host.layer("batch_norm", {host.data(data)}, {{"frozen", true}, {"epsilon", 0.0}}, "y");
  const Layer cost = host.layer("sum_cost", {y}, {}, "cost");
  const Parameters parameters = host.parameters({y, cost}, 1);
  const float mean[] = {1, -2}, variance[] = {4, 0.25F};
  parameters.set("y.moving_mean", {TN_F32, {2}, mean});
  parameters.set("y.moving_variance", {TN_F32, {2}, variance});
  const float x[] = {3, -1, 0, -2};
  for (const bool training : {true, false}) {
    MachineOptions options;
    options.training = training;
    options.max_samples = 2;
    const Machine machine = host.machine(parameters, {y, cost}, options);
    machine.forward({{"x", {TN_F32, {2, 2}, x}}});
    const auto* const values = static_cast<const float*>(machine.output(y).data);
    EXPECT_EQ(std::vector<float>(values, values + 4), (std::vector<float>{1, 2, -0.5F, 0})) << training;
    if (!training) continue;
    machine.backward();
    const auto* const scale = static_cast<const float*>(machine.gradient("y.scale").data);
    EXPECT_EQ(std::vector<float>(scale, scale + 2), (std::vector<float>{0.25F, 1}));  // mean over two samples
    host.updater("sgd", {{"learning_rate", 0.0}}).update(machine);
  }
  EXPECT_EQ(static_cast<const float*>(parameters.get("y.moving_mean").data)[1], -2);
  EXPECT_EQ(static_cast<const float*>(parameters.get("y.moving_variance").data)[1], 0.25F);
}
// Its variance is 0: a step with one sample gives the shift, without a gradient of what comes before.
TEST(BatchNorm, OneValueHasNoVariance) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32, data.shape = {2};
  const Layer before = host.layer("fc", {host.data(data)}, {{"size", 2}}, "before");
  const Layer y = host.layer("batch_norm", {before}, {}, "y");
  const Layer cost = host.layer("sum_cost", {y}, {}, "cost");
  const Parameters parameters = host.parameters({y, cost}, 1);
  const float shift[] = {0.5F, -3}, x[] = {1e6F, -7};
  parameters.set("y.shift", {TN_F32, {2}, shift});
  MachineOptions options;
  options.training = true;
  options.max_samples = 1;
  const Machine machine = host.machine(parameters, {y, cost}, options);
  machine.forward({{"x", {TN_F32, {1, 2}, x}}});
  machine.backward();
  const auto values = [](const Array& array) {
    const auto* const of = static_cast<const float*>(array.data);
    return std::vector<float>(of, of + array.count());
  };
  EXPECT_EQ(values(machine.output(y)), (std::vector<float>{0.5F, -3}));
  EXPECT_EQ(values(machine.gradient("before.weight")), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(values(machine.gradient("y.scale")), (std::vector<float>{0, 0}));
  EXPECT_EQ(values(machine.gradient("y.shift")), (std::vector<float>{1, 1}));
  host.updater("sgd", {{"learning_rate", 0.0}}).update(machine);
  EXPECT_EQ(values(parameters.get("y.moving_variance")), (std::vector<float>{0.9F, 0.9F}));
}
TEST(BatchNorm, RefusesBadInput) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32;
  try {
    (void)host.layer("batch_norm", {host.data(data)}, {}, "bad");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_INVALID);
    EXPECT_NE(std::string(error.what()).find("[samples, ..., features]"), std::string::npos) << error.what();
  }
}

// Of samples of [positions, channels], in groups of neighbouring channels.
LayerCase group_norm(const std::string& type, const std::vector<int64_t>& shape, size_t groups,
                     const Attributes& attributes, double epsilon = 1e-5) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  layer.inputs = {{shape}};
  layer.output_shape = shape;
  layer.gradient_rounded = 0.1;  // of equal values, differences of nearly equal numbers by the root of epsilon
  layer.tolerance = 5e-6;
  size_t positions = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) positions *= static_cast<size_t>(shape[i]);
  const auto channels = static_cast<size_t>(shape.back());
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> y = a.inputs[0];
    const size_t size = channels / groups;
    const auto values = static_cast<double>(positions * size);
    for (size_t first = 0; first < y.size(); first += positions * channels)
      for (size_t group = 0; group < groups; ++group) {
        std::vector<size_t> places;
        for (size_t i = 0; i < positions * channels; ++i)
          if (i % channels / size == group) places.push_back(first + i);
        double mean = 0, square = 0;
        for (const size_t i : places) mean += y[i] / values;
        for (const size_t i : places) square += (y[i] - mean) * (y[i] - mean) / values;
        for (const size_t i : places) {
          y[i] = (y[i] - mean) / std::sqrt(square + epsilon);
          if (!a.parameters.contains("scale")) continue;
          y[i] = y[i] * a.parameters.at("scale")[i % channels] + a.parameters.at("shift")[i % channels];
        }
      }
    return y;
  };
  return layer;
}
TEST(GroupNorm, OfNeighbouringChannels) {
  EXPECT_GT(check_layer(group_norm("group_norm", {3, 6}, 2, {{"groups", 2}})), 0);
  EXPECT_GT(check_layer(group_norm("group_norm", {6}, 3, {{"groups", 3}, {"epsilon", 0.5}}, 0.5)), 0);
  EXPECT_GT(check_layer(group_norm("group_norm", {2, 2, 3}, 1, {{"groups", 1}, {"learnable", false}})), 0);
}
TEST(GroupNorm, OnRowsOfSequences) {
  EXPECT_GT(check_layer(on_rows(group_norm("group_norm", {3, 4}, 2, {{"groups", 2}}), 1)), 0);
}
TEST(InstanceNorm, OfEachChannel) {
  EXPECT_GT(check_layer(group_norm("instance_norm", {5, 3}, 3, {})), 0);
  EXPECT_GT(check_layer(group_norm("instance_norm", {2, 3, 2}, 2, {{"epsilon", 0.25}, {"learnable", false}}, 0.25)), 0);
  EXPECT_GT(check_layer(group_norm("instance_norm", {7, 1}, 1, {})), 0);
}

TEST(RmsNorm, OverTheLastDimension) {
  EXPECT_GT(check_layer(norm(false, {7}, {})), 0);
  EXPECT_GT(check_layer(norm(false, {3, 5}, {{"shift", true}})), 0);
  EXPECT_GT(check_layer(norm(false, {5}, {{"learnable", false}})), 0);
  EXPECT_GT(check_layer(norm(false, {1}, {{"epsilon", 0.25}}, 0.25)), 0);
}

// Along a dimension of [3, 4].
LayerCase unit(size_t dimension, int64_t order, const Attributes& attributes, double epsilon = 1e-12) {
  LayerCase layer;
  layer.type = "normalize";
  layer.attributes = attributes;
  layer.inputs = {{{3, 4}}};
  layer.inputs[0].limited = true;  // the square of a huge number is infinite
  layer.samples = {1, 2, 7};
  layer.jumps = true;          // a vector of zeros has no direction
  layer.gradient_rounded = 1;  // the derivative along the vector is 0
  layer.output_shape = {3, 4};
  layer.formula = [=](const FormulaArguments& a) {
    std::map<size_t, double> lengths;  // by the place of the vector
    const auto vector = [=](size_t i) { return dimension == 0 ? i / 12 * 12 + i % 4 : i / 4; };
    for (size_t i = 0; i < a.inputs[0].size(); ++i)
      lengths[vector(i)] += std::pow(std::abs(a.inputs[0][i]), static_cast<double>(order));
    std::vector<double> y = a.inputs[0];
    for (size_t i = 0; i < y.size(); ++i) {
      const double length = std::pow(lengths[vector(i)], 1.0 / static_cast<double>(order));
      y[i] = length > epsilon ? y[i] / length : 0;
    }
    return y;
  };
  return layer;
}
TEST(Normalize, AlongAnAxis) {
  EXPECT_GT(check_layer(unit(1, 2, {})), 0);
  EXPECT_GT(check_layer(unit(0, 2, {{"axis", 1}})), 0);
  EXPECT_GT(check_layer(unit(1, 1, {{"order", 1}})), 0);
  EXPECT_GT(check_layer(unit(0, 1, {{"order", 1}, {"axis", -2}})), 0);
  EXPECT_GT(check_layer(unit(1, 2, {{"epsilon", 1.0}}, 1)), 0);
}

// Of channels, the last dimension.
LayerCase response(const std::vector<int64_t>& shape, int64_t size, const Attributes& attributes, double alpha,
                   double beta, double k) {
  LayerCase layer;
  layer.type = "local_response_norm";
  layer.attributes = attributes;
  layer.inputs = {{shape}};
  layer.inputs[0].limited = true;  // the square of a huge number is infinite
  layer.output_shape = shape;
  layer.samples = {1, 2, 7};
  layer.gradient_rounded = 0.1;
  layer.formula = [=](const FormulaArguments& a) {
    std::vector<double> y;
    const int64_t channels = shape.back();
    for (int64_t i = 0; i < static_cast<int64_t>(a.inputs[0].size()); ++i) {
      double squares = 0;
      for (int64_t c = i % channels - size / 2, step = 0; step < size; ++step, ++c)
        if (c >= 0 && c < channels) squares += std::pow(a.inputs[0][static_cast<size_t>(i - i % channels + c)], 2);
      y.push_back(a.inputs[0][static_cast<size_t>(i)] /
                  std::pow(k + alpha / static_cast<double>(size) * squares, beta));
    }
    return y;
  };
  return layer;
}
TEST(LocalResponseNorm, OverNeighbours) {
  EXPECT_GT(check_layer(response({2, 7}, 5, {}, 1e-4, 0.75, 1)), 0);
  const Attributes strong = {{"size", 4}, {"alpha", 2.0}, {"beta", 0.5}, {"k", 0.25}};
  EXPECT_GT(check_layer(response({6}, 4, strong, 2, 0.5, 0.25)), 0);
  EXPECT_GT(check_layer(response({2}, 5, {{"alpha", 1.0}}, 1, 0.75, 1)), 0);  // a window wider than the channels
  EXPECT_GT(check_layer(response({3}, 1, {{"size", 1}, {"alpha", 1.0}}, 1, 0.75, 1)), 0);
}

// A row of equal values has the variance 0: the output is the shift, without a division by 0.
TEST(LayerNorm, EqualValues) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32, data.shape = {3};
  const Layer y = host.layer("layer_norm", {host.data(data)}, {}, "y");
  MachineOptions options;
  options.training = false;
  options.max_samples = 1;
  const Machine machine = host.machine(host.parameters({y}, 1), {y}, options);
  const float x[] = {1e4F, 1e4F, 1e4F};
  machine.forward({{"x", {TN_F32, {1, 3}, x}}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(static_cast<const float*>(machine.output(y).data)[i], 0);
}

TEST(Norms, MistakesAreNamed) {
  Host host({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  DataOptions data;
  data.name = "x", data.dtype = TN_F32;
  const Layer flat = host.data(data);
  data.name = "y", data.shape = {3};
  const Layer rows = host.data(data);
  const auto message = [&](const std::string& type, const Layer& input, const Attributes& attributes) -> std::string {
    try {
      (void)host.layer(type, {input}, attributes, "bad");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message("layer_norm", flat, {}).find("[samples, ..., features]"), std::string::npos);
  EXPECT_NE(message("rms_norm", flat, {}).find("[samples]"), std::string::npos);
  EXPECT_NE(message("rms_norm", rows, {{"learnable", false}, {"shift", true}}).find("shift"), std::string::npos);
  EXPECT_NE(message("layer_norm", rows, {{"epsilon", -1.0}}).find("epsilon"), std::string::npos);
  EXPECT_NE(message("group_norm", flat, {{"groups", 1}}).find("[samples, ..., channels]"), std::string::npos);
  EXPECT_NE(message("group_norm", rows, {{"groups", 2}}).find("2 groups do not divide"), std::string::npos);
  EXPECT_NE(message("group_norm", rows, {{"groups", 3}}).find("one number in each of 3 groups"), std::string::npos);
  for (const int64_t axis : {0, 2, -2})
    EXPECT_NE(message("normalize", rows, {{"axis", axis}}).find("no axis " + std::to_string(axis)), std::string::npos);
  EXPECT_NE(message("local_response_norm", flat, {}).find("[samples, ..., channels]"), std::string::npos);
  EXPECT_NE(message("local_response_norm", rows, {{"size", 16}}).find("size"), std::string::npos);
  EXPECT_NE(message("instance_norm", rows, {}).find("[samples, positions..., channels]"), std::string::npos);
}

}  // namespace
}  // namespace tenon_tests
