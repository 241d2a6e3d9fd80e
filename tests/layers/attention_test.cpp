// The layers of plugins/layers/attention. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tenon/tenon_lease.hpp>

#include "tests/layers/layers_on_a_host.h"
#include "tests/support/layer_check.h"

namespace tenon_tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Values = std::vector<double>;

// The sizes of a case: features `depth` and `width` of one head.
struct Sizes {
  size_t heads = 1, queries = 1, keys = 1, depth = 1, width = 1;
  bool causal = false;
  double scale = 0;  // 0: 1 / sqrt(depth)
};

// Whether query q of a sample sees key k.
using Visible = std::function<bool(size_t sample, size_t q, size_t k)>;
// What is added to a score.
using Bias = std::function<double(size_t sample, size_t head, size_t q, size_t k)>;
double no_bias(size_t, size_t, size_t, size_t) { return 0; }

// The weights [samples, heads, queries, keys] by their definition.
Values shares(const Sizes& s, const Values& query, const Values& key, size_t samples, const Visible& visible,
              const Bias& bias = no_bias) {
  const double scale = s.scale == 0 ? 1 / std::sqrt(static_cast<double>(s.depth)) : s.scale;
  Values result;
  for (size_t n = 0; n < samples; ++n)
    for (size_t h = 0; h < s.heads; ++h)
      for (size_t q = 0; q < s.queries; ++q) {
        Values row(s.keys, 0);
        double largest = -INFINITY, sum = 0;
        const auto sees = [&](size_t k) { return visible(n, q, k) && (!s.causal || k + s.queries <= q + s.keys); };
        for (size_t k = 0; k < s.keys; ++k) {
          double dot = 0;
          for (size_t d = 0; d < s.depth; ++d)
            dot += query[(n * s.queries + q) * s.heads * s.depth + h * s.depth + d] *
                   key[(n * s.keys + k) * s.heads * s.depth + h * s.depth + d];
          row[k] = scale * dot + bias(n, h, q, k);
          if (sees(k)) largest = std::max(largest, row[k]);
        }
        for (size_t k = 0; k < s.keys; ++k) {
          row[k] = sees(k) ? std::exp(row[k] - largest) : 0;
          sum += row[k];
        }
        for (double& share : row) result.push_back(sum > 0 ? share / sum : 0);
      }
  return result;
}

// The output [samples, queries, heads * width] from the weights.
Values attended(const Sizes& s, const Values& weights, const Values& value, size_t samples) {
  Values result(samples * s.queries * s.heads * s.width, 0);
  for (size_t n = 0; n < samples; ++n)
    for (size_t h = 0; h < s.heads; ++h)
      for (size_t q = 0; q < s.queries; ++q)
        for (size_t k = 0; k < s.keys; ++k)
          for (size_t w = 0; w < s.width; ++w)
            result[((n * s.queries + q) * s.heads + h) * s.width + w] +=
                weights[((n * s.heads + h) * s.queries + q) * s.keys + k] *
                value[((n * s.keys + k) * s.heads + h) * s.width + w];
  return result;
}

// A case with the inputs query, key, value and, if `mask_shape` is not empty, a mask of zeros and ones.
LayerCase attention(const Sizes& s, const std::vector<int64_t>& mask_shape = {}) {
  const auto size = [](size_t number) { return static_cast<int64_t>(number); };
  LayerCase layer;
  layer.type = "attention";
  layer.attributes = {{"heads", size(s.heads)}, {"causal", s.causal}};
  if (s.scale != 0) layer.attributes.push_back({"scale", s.scale});
  layer.inputs = {{{size(s.queries), size(s.heads * s.depth)}},
                  {{size(s.keys), size(s.heads * s.depth)}},
                  {{size(s.keys), size(s.heads * s.width)}}};
  if (!mask_shape.empty()) layer.inputs.push_back({mask_shape, 2});
  const auto weights = [=](const FormulaArguments& a) {
    const Visible visible = [&](size_t n, size_t q, size_t k) {
      if (a.inputs.size() < 4) return true;
      return a.inputs[3][mask_shape.size() == 1 ? n * s.keys + k : (n * s.queries + q) * s.keys + k] != 0;
    };
    return shares(s, a.inputs[0], a.inputs[1], static_cast<size_t>(a.samples), visible);
  };
  layer.formula = [=](const FormulaArguments& a) {
    return attended(s, weights(a), a.inputs[2], static_cast<size_t>(a.samples));
  };
  layer.output_shape = {size(s.queries), size(s.heads * s.width)};
  layer.more_outputs = {{{size(s.heads), size(s.queries), size(s.keys)}, weights}};
  layer.samples = {1, 2, 7};
  layer.tolerance = 1e-5;
  layer.gradient_tolerance = 5e-5;
  for (size_t i = 0; i < 3; ++i) layer.inputs[i].limited = true;
  return layer;
}

TEST(Attention, OneHead) {
  EXPECT_GT(check_layer(attention({.queries = 3, .keys = 5, .depth = 4, .width = 2})), 0);
  EXPECT_GT(check_layer(attention({.queries = 1, .keys = 1, .depth = 1, .width = 1})), 0);
}
TEST(Attention, Heads) {
  EXPECT_GT(check_layer(attention({.heads = 2, .queries = 3, .keys = 4, .depth = 3, .width = 2, .scale = 0.7})), 0);
}
TEST(Attention, Causal) {
  EXPECT_GT(check_layer(attention({.heads = 2, .queries = 4, .keys = 4, .depth = 2, .width = 2, .causal = true})), 0);
  EXPECT_GT(check_layer(attention({.queries = 2, .keys = 5, .depth = 2, .width = 2, .causal = true})), 0);
  EXPECT_GT(check_layer(attention({.queries = 4, .keys = 2, .depth = 2, .width = 2, .causal = true})), 0)
      << "queries that see no key";
}
TEST(Attention, Masks) {
  for (const size_t heads : {1, 3}) {
    EXPECT_GT(check_layer(attention({.heads = heads, .queries = 3, .keys = 4, .depth = 2, .width = 2}, {4})), 0);
    EXPECT_GT(check_layer(attention({.heads = heads, .queries = 3, .keys = 4, .depth = 2, .width = 2}, {3, 4})), 0);
  }
  EXPECT_GT(check_layer(attention({.heads = 2, .queries = 4, .keys = 4, .depth = 2, .width = 2, .causal = true}, {4})),
            0);
  EXPECT_GT(check_layer(attention({.queries = 1, .keys = 4, .depth = 2, .width = 2}, {4})), 0);
}

// A bias for each head or for all, with and without a mask, and its gradient.
TEST(Attention, Biases) {
  const auto biased = [](const Sizes& s, bool each_head, const std::vector<int64_t>& mask_shape) {
    LayerCase layer = attention(s, mask_shape);
    const size_t port = layer.inputs.size();
    std::vector<int64_t> shape = {static_cast<int64_t>(s.queries), static_cast<int64_t>(s.keys)};
    if (each_head) shape.insert(shape.begin(), static_cast<int64_t>(s.heads));
    layer.inputs.push_back({shape});
    layer.inputs.back().limited = true;
    const auto weights = [=](const FormulaArguments& a) {
      const Visible visible = [&](size_t n, size_t q, size_t k) {
        return a.inputs[3][mask_shape.size() == 1 ? n * s.keys + k : (n * s.queries + q) * s.keys + k] != 0;
      };
      const Bias bias = [&](size_t n, size_t h, size_t q, size_t k) {
        return a.inputs[port][((each_head ? n * s.heads + h : n) * s.queries + q) * s.keys + k];
      };
      return shares(s, a.inputs[0], a.inputs[1], static_cast<size_t>(a.samples), visible, bias);
    };
    layer.formula = [=](const FormulaArguments& a) {
      return attended(s, weights(a), a.inputs[2], static_cast<size_t>(a.samples));
    };
    layer.more_outputs[0].formula = weights;
    return layer;
  };
  for (const bool each_head : {false, true}) {
    EXPECT_GT(check_layer(biased({.heads = 2, .queries = 3, .keys = 4, .depth = 2, .width = 2}, each_head, {4})), 0);
    EXPECT_GT(check_layer(biased({.queries = 2, .keys = 3, .depth = 2, .width = 2, .causal = true}, each_head, {2, 3})),
              0);
  }
}

// With one input the key and the value are the query.
TEST(Attention, OfItself) {
  const Sizes s = {.heads = 2, .queries = 4, .keys = 4, .depth = 2, .width = 2};
  LayerCase layer = attention(s);
  layer.inputs.resize(1);
  const auto weights = [=](const FormulaArguments& a) {
    return shares(s, a.inputs[0], a.inputs[0], static_cast<size_t>(a.samples), [](auto...) { return true; });
  };
  layer.formula = [=](const FormulaArguments& a) {
    return attended(s, weights(a), a.inputs[0], static_cast<size_t>(a.samples));
  };
  layer.more_outputs[0].formula = weights;
  EXPECT_GT(check_layer(layer), 0);
}

// x [rows, columns] weight [columns, size] + bias [size]
Values projected(const Values& x, const Values& weight, const Values& bias) {
  const size_t size = bias.size(), columns = weight.size() / size;
  Values result;
  for (size_t r = 0; r < x.size() / columns; ++r)
    for (size_t j = 0; j < size; ++j) {
      double sum = bias[j];
      for (size_t i = 0; i < columns; ++i) sum += x[r * columns + i] * weight[i * size + j];
      result.push_back(sum);
    }
  return result;
}

TEST(Attention, Projected) {
  const Sizes s = {.heads = 2, .queries = 3, .keys = 4, .depth = 2, .width = 2, .causal = true};
  LayerCase layer = attention(s, {4});
  layer.type = "multi_head_attention";
  layer.attributes = {{"heads", 2}, {"causal", true}, {"size", 4}, {"output_size", 5}};
  layer.inputs[0].shape = {3, 6};
  layer.inputs[1].shape = {4, 3};
  layer.inputs[2].shape = {4, 2};
  layer.more_outputs.clear();
  layer.output_shape = {3, 5};
  layer.gradient_rounded = 1;  // a bias of the keys changes nothing: its gradient is a sum of terms that cancel
  layer.formula = [=](const FormulaArguments& a) {
    const auto of = [&](const Values& x, const std::string& name) {
      return projected(x, a.parameters.at(name + ".weight"), a.parameters.at(name + ".bias"));
    };
    const auto samples = static_cast<size_t>(a.samples);
    const Values weights = shares(s, of(a.inputs[0], "query"), of(a.inputs[1], "key"), samples,
                                  [&](size_t n, size_t, size_t k) { return a.inputs[3][n * 4 + k] != 0; });
    return of(attended(s, weights, of(a.inputs[2], "value"), samples), "output");
  };
  EXPECT_GT(check_layer(layer), 0);
}

double encoding(size_t position, size_t feature, size_t features, double base) {
  const double angle = static_cast<double>(position) /
                       std::pow(base, static_cast<double>(feature / 2 * 2) / static_cast<double>(features));
  return feature % 2 == 0 ? std::sin(angle) : std::cos(angle);
}

// Rows with a position of their own.
LayerCase at_positions(const std::string& type, const Attributes& attributes,
                       const std::function<double(const FormulaArguments&, size_t position, size_t feature)>& added) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  layer.inputs = {{{5}}, {{}, 6}};
  layer.output_shape = {5};
  layer.formula = [=](const FormulaArguments& a) {
    Values y = a.inputs[0];
    for (size_t i = 0; i < y.size(); ++i) y[i] += added(a, static_cast<size_t>(a.inputs[1][i / 5]), i % 5);
    return y;
  };
  return layer;
}

TEST(Positions, GivenForEachRow) {
  EXPECT_GT(check_layer(at_positions("positional_encoding", {{"base", 100.0}},
                                     [](const FormulaArguments&, size_t position, size_t feature) {
                                       return encoding(position, feature, 5, 100);
                                     })),
            0);
  EXPECT_GT(check_layer(at_positions("position_embedding", {{"length", 6}},
                                     [](const FormulaArguments& a, size_t position, size_t feature) {
                                       return a.parameters.at("weight")[position * 5 + feature];
                                     })),
            0);
}

TEST(Positions, SinesAndCosines) {
  LayerCase layer;
  layer.type = "positional_encoding";
  layer.attributes = {{"base", 100.0}};
  layer.inputs = {{{6, 5}}};
  layer.output_shape = {6, 5};
  layer.formula = [](const FormulaArguments& a) {
    Values y = a.inputs[0];
    for (size_t i = 0; i < y.size(); ++i) y[i] += encoding(i / 5 % 6, i % 5, 5, 100);
    return y;
  };
  EXPECT_GT(check_layer(layer), 0);

  LayerCase rows = layer;
  rows.inputs = {{{5}}};
  rows.inputs[0].sequence = "rows";
  rows.output_rows = true;
  rows.output_shape = {5};
  rows.formula = [](const FormulaArguments& a) {
    Values y = a.inputs[0];
    const std::vector<int64_t>& ends = a.offsets[0][0];
    for (size_t s = 0; s + 1 < ends.size(); ++s)
      for (auto r = static_cast<size_t>(ends[s]); r < static_cast<size_t>(ends[s + 1]); ++r)
        for (size_t d = 0; d < 5; ++d) y[r * 5 + d] += encoding(r - static_cast<size_t>(ends[s]), d, 5, 100);
    return y;
  };
  EXPECT_GT(check_layer(rows), 0);
}

TEST(Positions, Trained) {
  LayerCase layer;
  layer.type = "position_embedding";
  layer.inputs = {{{4, 3}}};
  layer.output_shape = {4, 3};
  layer.formula = [](const FormulaArguments& a) {
    Values y = a.inputs[0];
    for (size_t i = 0; i < y.size(); ++i) y[i] += a.parameters.at("weight")[i % 12];
    return y;
  };
  EXPECT_GT(check_layer(layer), 0);
  layer.attributes = {{"length", 6}};
  EXPECT_GT(check_layer(layer), 0);

  LayerCase rows = layer;
  rows.attributes = {{"length", 40}};
  rows.inputs = {{{3}}};
  rows.inputs[0].sequence = "rows";
  rows.output_rows = true;
  rows.output_shape = {3};
  rows.formula = [](const FormulaArguments& a) {
    Values y = a.inputs[0];
    const std::vector<int64_t>& ends = a.offsets[0][0];
    for (size_t s = 0; s + 1 < ends.size(); ++s)
      for (auto r = static_cast<size_t>(ends[s]); r < static_cast<size_t>(ends[s + 1]); ++r)
        for (size_t d = 0; d < 3; ++d)
          y[r * 3 + d] += a.parameters.at("weight")[(r - static_cast<size_t>(ends[s])) * 3 + d];
    return y;
  };
  EXPECT_GT(check_layer(rows), 0);
}

class AttentionErrors : public LayersOnAHost {};

// Numbers that are added, as PyTorch's float masks are, hide keys where they are -infinity. A relative bias is trained.
TEST_F(AttentionErrors, ABiasIsAdded) {
  const Layer query = data("query", {3, 4});
  std::vector<double> causal;
  for (const size_t q : {0, 1, 2})
    for (const size_t k : {0, 1, 2}) causal.push_back(k <= q ? 0 : -INFINITY);
  for (const auto& [type, port] : {std::pair{"attention", "bias"}, {"multi_head_attention", "score_bias"}}) {
    const Attributes same = {{"heads", 2}};
    const Layer by_bias = host_.layer(type, {query, query, query, Layer(), data("added", {3, 3})}, same, "att");
    const Layer by_flag = host_.layer(type, {query}, {{"heads", 2}, {"causal", true}}, "att");
    std::vector<float> values(24), added;
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) / 4 - 0.5F;
    for (const size_t sample : {0, 1})
      for (const double number : causal) added.push_back(static_cast<float>(number) + 0 * static_cast<float>(sample));
    const auto output = [&](const Layer& layer, bool fed) {
      MachineOptions options;
      options.max_samples = 2;
      const Machine machine = host_.machine(host_.parameters({layer}, 1), {layer}, options);
      std::vector<Feed> feeds = {{"query", {TN_F32, {2, 3, 4}, values.data()}}};
      if (fed) feeds.push_back({"added", {TN_F32, {2, 3, 3}, added.data()}});
      machine.forward(feeds);
      const auto* const made = static_cast<const float*>(machine.output(layer).data);
      return std::vector<float>(made, made + 24);
    };
    const std::vector<float> one = output(by_bias, true), other = output(by_flag, false);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], other[i], 1e-6) << type;
    EXPECT_THAT(mistake(type, {query, query, query, Layer(), data("wrong", {3, 4})}, same),
                AllOf(HasSubstr(std::string(port) + ": must have one number for each query and key"),
                      HasSubstr("[samples, 2, 3, 3]")));
    const Layer relative = host_.layer("parameter", {query}, {{"shape", std::vector<int64_t>{2, 3, 3}}}, "relative");
    const Layer cost =
        host_.layer("sum_cost", {host_.layer(type, {query, query, query, Layer(), relative}, same, "att")}, {}, "cost");
    MachineOptions options;
    options.max_samples = 2, options.training = true;
    const Machine machine = host_.machine(host_.parameters({cost}, 1), {cost}, options);
    machine.forward({{"query", {TN_F32, {2, 3, 4}, values.data()}}});
    machine.backward();
    const auto* const gradient = static_cast<const float*>(machine.gradient("relative.value").data);
    EXPECT_TRUE(std::any_of(gradient, gradient + 18, [](float each) { return each != 0; })) << type;
  }
}

TEST_F(AttentionErrors, NameLayerPortAndShapes) {
  const Layer query = data("query", {3, 4});
  for (const char* type : {"attention", "multi_head_attention"}) {
    EXPECT_THAT(mistake(type, {query, data("key", {5, 4}), data("value", {6, 4})}, {}),
                AllOf(HasSubstr("layer \"bad\""), HasSubstr("value: must have as many positions as the key"),
                      HasSubstr("[samples, 5, 4]"), HasSubstr("[samples, 6, 4]")));
    EXPECT_THAT(mistake(type, {query, query, query, data("mask", {4})}, {}),
                AllOf(HasSubstr("mask: must have one number for each key"), HasSubstr("[samples, 3, 3]"),
                      HasSubstr("[samples, 4]")));
    EXPECT_THAT(mistake(type, {query}, {{"heads", 3}}), HasSubstr("heads"));
    EXPECT_THAT(mistake(type, {data("flat", {4})}, {}),
                AllOf(HasSubstr("query: must be [samples, positions, features]"), HasSubstr("[samples, 4]")));
    EXPECT_THAT(mistake(type, {data("none", {0, 4})}, {}), HasSubstr("has no elements"));
  }
  EXPECT_THAT(mistake("attention", {sequences("words", {3, 4})}, {}, TN_UNSUPPORTED),
              AllOf(HasSubstr("sequence_attention"), HasSubstr("sequence_pad")));
  EXPECT_THAT(mistake("multi_head_attention", {sequences("words", {3, 4})}, {}),
              HasSubstr("query: must be [samples, positions, features] or sequences [rows, features]"));
  EXPECT_THAT(mistake("attention", {query, data("key", {5, 2})}, {}),
              AllOf(HasSubstr("key: must have as many features as the query"), HasSubstr("[samples, 3, 4]")));
  EXPECT_THAT(mistake("attention", {query}, {{"dropout", 1.5}}), HasSubstr("dropout"));
  EXPECT_THAT(mistake("position_embedding", {query}, {{"length", 2}}),
              AllOf(HasSubstr("input"), HasSubstr("length of 2"), HasSubstr("[samples, 3, 4]")));
  EXPECT_THAT(mistake("position_embedding", {sequences("rows", {4})}, {}), HasSubstr("length: is required"));
  EXPECT_THAT(mistake("positional_encoding", {data("flat", {4})}, {}), HasSubstr("must be [samples, positions"));
}

// In training dropout keeps the mean; in a machine that only answers it changes nothing.
// The parameters of the projections are set by their names in the layer.
TEST_F(AttentionErrors, ParametersOfTheProjections) {
  const Layer query = data("query", {3, 4});
  const Layer made = host_.layer("multi_head_attention", {query},
                                 {{"param.key.weight.init", "constant"},
                                  {"param.key.weight.init_value", 0.25},
                                  {"param.output.bias.init", "constant"},
                                  {"param.output.bias.init_value", 2.0}},
                                 "mine");
  const Parameters set = host_.parameters({made}, 1);
  EXPECT_EQ(read(set, "mine.key.weight"), std::vector<float>(16, 0.25F));
  EXPECT_EQ(read(set, "mine.output.bias"), std::vector<float>(4, 2.0F));
  EXPECT_NE(read(set, "mine.query.weight"), std::vector<float>(16, 0.25F));
  EXPECT_THAT(mistake("multi_head_attention", {query}, {{"param.keys.weight.init", "constant"}}),
              HasSubstr("no parameter \"keys.weight\"; did you mean \"key.weight\"?"));
}

TEST_F(AttentionErrors, Dropout) {
  const Layer query = data("query", {16, 2}), key = data("key", {16, 2}), value = data("value", {16, 2});
  const Layer dropped = host_.layer("attention", {query, key, value}, {{"dropout", 0.5}}, "dropped");
  const std::vector<float> zeros(4 * 32, 0), ones(4 * 32, 1);
  for (const bool training : {false, true}) {
    MachineOptions options;
    options.training = training;
    options.max_samples = 4;
    const Layer cost = host_.layer("sum_cost", {dropped}, {}, "cost");
    const Machine machine = host_.machine(host_.parameters({cost}, 1), {cost, dropped}, options);
    machine.forward({{"query", {TN_F32, {4, 16, 2}, zeros.data()}},
                     {"key", {TN_F32, {4, 16, 2}, zeros.data()}},
                     {"value", {TN_F32, {4, 16, 2}, ones.data()}}});
    const Array output = machine.output(dropped);
    double sum = 0, off = 0;
    for (int64_t i = 0; i < output.count(); ++i) {
      const double y = static_cast<double>(static_cast<const float*>(output.data)[i]);
      sum += y;
      off += std::abs(y - 1) > 1e-6 ? 1 : 0;
    }
    EXPECT_NEAR(sum / static_cast<double>(output.count()), 1, training ? 0.15 : 1e-6);
    EXPECT_EQ(off > 0, training);
  }
}

}  // namespace
}  // namespace tenon_tests
