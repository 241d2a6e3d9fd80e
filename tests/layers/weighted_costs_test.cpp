// Weights of costs, masked values that are not numbers, and costs of embeddings. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/layers/layers_on_a_host.h"
#include "tests/support/layer_check.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

void check(const LayerCase& layer) { EXPECT_GT(check_layer(layer), 0); }

double softplus(double z) { return z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z)); }

// A cost of values of one shape: the range of its inputs, and the cost of one value.
struct Weighted {
  std::string type;
  std::vector<CheckedInput> inputs;
  std::function<double(const double*)> value;
  double rounded = 0;
};

void PrintTo(const Weighted& of, std::ostream* out) { *out << of.type; }

std::vector<Weighted> weighted_costs() {
  const CheckedInput any{{3}}, low{{3}, 0, -2, -0.1}, high{{3}, 0, 0.1, 2}, binary{{3}, 2};
  return {
      {"square_error", {any, any}, [](const double* v) { return (v[0] - v[1]) * (v[0] - v[1]); }, 1},
      {"absolute_error", {low, high}, [](const double* v) { return v[1] - v[0]; }, 1},
      {"huber",
       {any, any},
       [](const double* v) {
         const double e = std::abs(v[0] - v[1]);
         return e <= 1 ? e * e / 2 : e - 0.5;
       },
       1},
      {"smooth_l1",
       {any, any},
       [](const double* v) {
         const double e = std::abs(v[0] - v[1]);
         return e <= 1 ? e * e / 2 : e - 0.5;
       },
       1},
      {"hinge",
       {{{3}, 0, -0.9, 0.9}, binary},
       [](const double* v) { return std::max(0.0, 1 - (v[1] > 0 ? v[0] : -v[0])); },
       1},
      {"should_be_true", {any}, [](const double* v) { return softplus(-v[0]); }, 4},
      {"should_be_false", {any}, [](const double* v) { return softplus(v[0]); }, 4},
      {"sum_cost", {any}, [](const double* v) { return v[0]; }, 1},
      {"less_than", {any, any}, [](const double* v) { return softplus(v[0] - v[1]); }, 4},
      {"poisson_nll", {any, high}, [](const double* v) { return std::exp(v[0]) - v[1] * v[0]; }, 8},
      {"gaussian_nll",
       {any, any, {{3}, 0, 0.5, 2}},
       [](const double* v) { return (std::log(v[2]) + (v[0] - v[1]) * (v[0] - v[1]) / v[2]) / 2; },
       8},
      {"focal",
       {any, binary},
       [](const double* v) {
         const double z = v[1] > 0 ? v[0] : -v[0];
         return (v[1] > 0 ? 0.25 : 0.75) * std::exp(-2 * softplus(z)) * softplus(-z);
       },
       8},
      {"margin_ranking",
       {low, high, {{3}, 0, 0.5, 1}},
       [](const double* v) { return std::max(0.0, -v[2] * (v[0] - v[1])); },
       8},
  };
}

// The weight of each value, or of each sample.
class WeightedCosts : public testing::TestWithParam<Weighted> {};
TEST_P(WeightedCosts, CountValuesByTheirWeights) {
  const Weighted& of = GetParam();
  for (const bool each : {true, false}) {
    LayerCase layer;
    layer.type = of.type;
    layer.inputs = of.inputs;
    layer.inputs.push_back({each ? Shape{3} : Shape{}, 0, 0.5, 2});
    for (CheckedInput& input : layer.inputs) input.limited = true;
    layer.cost = true;
    layer.samples = {1, 7};
    layer.gradient_rounded = 4 * of.rounded;
    layer.formula = [=](const FormulaArguments& a) {
      Values cost(static_cast<size_t>(a.samples));
      for (size_t i = 0; i < a.inputs[0].size(); ++i) {
        double at[3] = {};
        for (size_t k = 0; k < of.inputs.size(); ++k) at[k] = a.inputs[k][i];
        cost[i / 3] += a.inputs.back()[each ? i : i / 3] * of.value(at);
      }
      return cost;
    };
    check(layer);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, WeightedCosts, testing::ValuesIn(weighted_costs()),
                         [](const auto& tested) { return tested.param.type; });

// ---- weight 0

class MaskedCosts : public LayersOnAHost {
 protected:
  struct Told {
    double cost;
    std::vector<float> gradient;  // by the bias that is added to the first input of all samples
  };
  // Two samples of three values (or of three scores of classes); `bad` is in the first input of the second.
  Told run(const std::string& type, const Attributes& attributes, Layers others, std::vector<Feed> feeds, float bad) {
    const Layer bias = host_.layer("fc", {data("zero", {1})}, {{"size", 3}}, "bias");
    const Layer x = host_.layer("add", {bias, data("x", {3})}, {}, "sum");
    others.insert(others.begin(), x);
    const Layer cost = host_.layer(type, others, attributes, "cost");
    MachineOptions options;
    options.max_samples = 2;
    options.training = true;
    const Parameters parameters = host_.parameters({cost}, 1);
    const Machine machine = host_.machine(parameters, {cost}, options);
    const float zero[2] = {}, values[] = {0.25F, 0.5F, 0.125F, bad, 0.5F, bad};
    feeds.push_back({"zero", {TN_F32, {2, 1}, zero}});
    feeds.push_back({"x", {TN_F32, {2, 3}, values}});
    machine.forward(feeds);
    machine.backward();
    const Array gradient = machine.gradient("bias.bias");
    const auto* const of = static_cast<const float*>(gradient.data);
    return {machine.cost(), {of, of + gradient.count()}};
  }
  // The cost and the gradient with a masked value that is not a number are those with a masked 1.
  void expect_masked(const std::string& type, const Attributes& attributes, const Layers& others,
                     const std::vector<Feed>& feeds) {
    const Told right = run(type, attributes, others, feeds, 1);
    EXPECT_TRUE(std::isfinite(right.cost)) << type;
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
      const Told told = run(type, attributes, others, feeds, bad);
      EXPECT_EQ(told.cost, right.cost) << type << " of " << bad;
      EXPECT_EQ(told.gradient, right.gradient) << type << " of " << bad;
    }
  }
};

constexpr float kHalves[] = {0.5F, 1, 0.25F, 0.5F, 1, 0.25F};
constexpr float kOneSample[] = {1, 0};
constexpr float kSomeValues[] = {1, 1, 2, 0, 1, 0};
constexpr int64_t kBinary[] = {1, 0, 1, 1, 0, 1};

TEST_F(MaskedCosts, ValuesThatAreNotNumbers) {
  for (const Weighted& of : weighted_costs())
    for (const bool each : {true, false}) {
      Layers others;
      std::vector<Feed> feeds;
      for (size_t i = 1; i < of.inputs.size(); ++i) {
        const bool integers = of.inputs[i].integers_below > 0;
        const std::string name = "other" + std::to_string(i);
        others.push_back(data(name, {3}, integers ? TN_I64 : TN_F32));
        feeds.push_back(
            {name, {integers ? TN_I64 : TN_F32, {2, 3}, integers ? static_cast<const void*>(kBinary) : kHalves}});
      }
      others.push_back(data("weight", each ? Shape{3} : Shape{}));
      feeds.push_back({"weight", {TN_F32, each ? Shape{2, 3} : Shape{2}, each ? kSomeValues : kOneSample}});
      expect_masked(of.type, {}, others, feeds);
    }
}

TEST_F(MaskedCosts, BinaryCrossEntropy) {
  const float labels[] = {0, 1, 0.5F, -1, 1, -1};
  const Layers weighted = {data("label", {3}), data("weight", {3})};
  const std::vector<Feed> feeds = {{"label", {TN_F32, {2, 3}, kHalves}}, {"weight", {TN_F32, {2, 3}, kSomeValues}}};
  for (const bool logits : {true, false}) {
    expect_masked("binary_cross_entropy", {{"from_logits", logits}}, weighted, feeds);
    expect_masked("binary_cross_entropy", {{"from_logits", logits}, {"ignore_index", -1}}, {data("label", {3})},
                  {{"label", {TN_F32, {2, 3}, labels}}});
  }
  // Ignored labels and weights together: what counts is what has a weight and a label.
  const float weights[] = {1, 0, 2, 1, 3, 1};
  const Told told = run("binary_cross_entropy", {{"from_logits", true}, {"ignore_index", -1}}, weighted,
                        {{"label", {TN_F32, {2, 3}, labels}}, {"weight", {TN_F32, {2, 3}, weights}}}, NAN);
  EXPECT_NEAR(told.cost,
              (softplus(0.25) + 2 * (0.5 * softplus(-0.125) + 0.5 * softplus(0.125)) + 3 * softplus(-0.5)) / 2, 1e-6);
}

TEST_F(MaskedCosts, OfRows) {
  const Layer weight = data("weight", {});
  const Feed weights = {"weight", {TN_F32, {2}, kOneSample}};
  const int64_t labels[] = {1, 2}, ignored[] = {1, 3};
  const Layer label = data("label", {}, TN_I64), q = data("q", {3});
  const Feed given = {"label", {TN_I64, {2}, labels}}, out = {"label", {TN_I64, {2}, ignored}};
  const Feed shares = {"q", {TN_F32, {2, 3}, kHalves}};
  for (const bool logits : {true, false}) {
    expect_masked("cross_entropy", {{"from_logits", logits}}, {label, weight}, {given, weights});
    expect_masked("cross_entropy", {{"from_logits", logits}}, {q, weight}, {shares, weights});
    expect_masked("cross_entropy", {{"from_logits", logits}, {"ignore_index", 3}}, {label}, {out});
    expect_masked("kl_divergence", {{"from_logits", logits}}, {q, weight}, {shares, weights});
  }
  expect_masked("categorical_focal", {}, {label, weight}, {given, weights});
  expect_masked("categorical_focal", {{"ignore_index", 3}}, {label}, {out});
  expect_masked("dice", {}, {q, weight}, {shares, weights});
  const Layer near = data("near", {3});
  const Feed nears = {"near", {TN_F32, {2, 3}, kSomeValues}};
  expect_masked("triplet", {}, {q, near, weight}, {shares, nears, weights});
  const float alike[] = {-1, 1};
  expect_masked("cosine_embedding", {}, {q, data("alike", {}), weight},
                {shares, {"alike", {TN_F32, {2}, alike}}, weights});
}

// Where no label counts the cost is 0, and so are the gradients.
TEST_F(MaskedCosts, IgnoredLabelsOnlyCostNothing) {
  const auto expect_nothing = [&](const std::string& type, const Attributes& attributes, const Layer& label,
                                  const Feed& ignored) {
    const Told told = run(type, attributes, {label}, {ignored}, 1);
    EXPECT_EQ(told.cost, 0) << type;
    EXPECT_EQ(told.gradient, (std::vector<float>{0, 0, 0})) << type;
  };
  const Layer label = data("label", {}, TN_I64), answers = data("answers", {3});
  const int64_t negative[] = {-100, -100}, above[] = {3, 3};
  const float none[] = {-1, -1, -1, -1, -1, -1};
  for (const bool logits : {true, false}) {
    for (const char* const average : {"samples", "weights"})
      for (const auto& [index, labels] : {std::pair{int64_t{-100}, negative}, {int64_t{3}, above}})
        expect_nothing("cross_entropy", {{"from_logits", logits}, {"average", average}, {"ignore_index", index}}, label,
                       {"label", {TN_I64, {2}, labels}});
    expect_nothing("binary_cross_entropy", {{"from_logits", logits}, {"ignore_index", -1}}, answers,
                   {"answers", {TN_F32, {2, 3}, none}});
  }
  expect_nothing("categorical_focal", {{"ignore_index", 3}}, label, {"label", {TN_I64, {2}, above}});
}

TEST_F(MaskedCosts, MistakesNameTheWeight) {
  const Layer x = data("a", {3}), label = data("label", {}, TN_I64);
  for (const std::string type : {"square_error", "less_than", "binary_cross_entropy"}) {
    const std::string said = mistake(type, {x, x, data("wrong", {4})});
    EXPECT_NE(said.find("weight: "), std::string::npos) << said;
    EXPECT_NE(said.find("[samples, 3]"), std::string::npos) << said;
    EXPECT_NE(said.find("[samples, 4]"), std::string::npos) << said;
  }
  for (const std::string type : {"kl_divergence", "dice"})
    EXPECT_NE(mistake(type, {x, x, data("wrong", {4})}).find("weight: "), std::string::npos);
  EXPECT_NE(mistake("triplet", {x, x, data("far", {4})}).find("negative: "), std::string::npos);
  EXPECT_NE(mistake("triplet", {label, label, label}).find("[samples, ..., D]"), std::string::npos);
  EXPECT_NE(mistake("cosine_embedding", {x, x, x}).find("label: "), std::string::npos);
  EXPECT_NE(mistake("categorical_focal", {x, label}, {{"class_weights", Values{1, 2}}}).find("3 numbers"),
            std::string::npos);
}

// ---- embeddings

double distance(const double* a, const double* b, bool squared) {
  double sum = 0;
  for (size_t k = 0; k < 4; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return squared ? sum : std::sqrt(sum);
}

TEST(Embeddings, Triplet) {
  for (const bool squared : {false, true})
    for (const bool swap : {false, true})
      for (const Shape& shape : {Shape{4}, Shape{2, 4}}) {
        LayerCase layer;
        layer.type = "triplet";
        layer.attributes = {{"margin", 9.0}, {"squared", squared}, {"swap", swap}};  // every row has a cost above 0
        // The ranges keep distances away from 0, and those that swap compares from each other.
        layer.inputs = {{shape, 0, -1, -0.5}, {shape, 0, 0, 0.5}, {shape, 0, 0.8, 1}};
        if (shape.size() == 1) layer.inputs.push_back({{}, 0, 0.5, 2});
        for (CheckedInput& input : layer.inputs) input.limited = true;
        layer.cost = true;
        layer.samples = {1, 5};
        layer.gradient_rounded = 4;
        layer.formula = [=](const FormulaArguments& a) {
          Values cost(static_cast<size_t>(a.samples));
          const size_t rows = a.inputs[0].size() / 4;
          for (size_t i = 0; i < rows; ++i) {
            const double *anchor = &a.inputs[0][i * 4], *positive = &a.inputs[1][i * 4],
                         *negative = &a.inputs[2][i * 4];
            double far = distance(anchor, negative, squared);
            if (swap) far = std::min(far, distance(positive, negative, squared));
            const double weight = a.inputs.size() > 3 ? a.inputs[3][i] : 1;
            cost[i / (rows / cost.size())] += weight * std::max(0.0, distance(anchor, positive, squared) - far + 9);
          }
          return cost;
        };
        check(layer);
      }
}

TEST(Embeddings, Cosine) {
  for (const double margin : {-0.9, 0.0})
    for (const Shape& rows : {Shape{}, Shape{2}}) {
      LayerCase layer;
      layer.type = "cosine_embedding";
      layer.attributes = {{"margin", margin}};
      Shape shape = rows;
      shape.push_back(4);
      // All numbers are above 0, so that the cosine is above the margin.
      layer.inputs = {{shape, 0, 0.3, 2}, {shape, 0, 0.3, 2}, {rows, 2}};
      for (CheckedInput& input : layer.inputs) input.limited = true;
      layer.cost = true;
      layer.samples = {1, 5};
      layer.gradient_rounded = 4;
      layer.formula = [=](const FormulaArguments& a) {
        Values cost(static_cast<size_t>(a.samples));
        const size_t count = a.inputs[0].size() / 4;
        for (size_t i = 0; i < count; ++i) {
          double ab = 0, aa = 0, bb = 0;
          for (size_t k = i * 4; k < (i + 1) * 4; ++k) {
            const double x = a.inputs[0][k], y = a.inputs[1][k];
            ab += x * y, aa += x * x, bb += y * y;
          }
          const double cosine = ab / std::sqrt(aa * bb);
          cost[i / (count / cost.size())] += a.inputs[2][i] > 0 ? 1 - cosine : std::max(0.0, cosine - margin);
        }
        return cost;
      };
      layer.rounded = [](const FormulaArguments& a) { return Values(static_cast<size_t>(a.samples), 4); };
      check(layer);
    }
}

TEST_F(MaskedCosts, DerivativesAtKinksAre0) {
  // Equal vectors: the distance to the negative one is 0, that to the positive one is not above it by the margin.
  const float same[] = {0.25F, 0.5F, 0.125F, 1, 0.5F, 1};
  const Layers vectors = {data("p", {3}), data("n", {3})};
  const Told told =
      run("triplet", {{"margin", 0.0}}, vectors, {{"p", {TN_F32, {2, 3}, same}}, {"n", {TN_F32, {2, 3}, same}}}, 1);
  EXPECT_EQ(told.cost, 0);
  EXPECT_EQ(told.gradient, (std::vector<float>{0, 0, 0}));
  const float none[6] = {}, apart[] = {-1, 1};
  const Told of_nothing = run("cosine_embedding", {}, {data("none", {3}), data("apart", {})},
                              {{"none", {TN_F32, {2, 3}, none}}, {"apart", {TN_F32, {2}, apart}}}, 1);
  EXPECT_EQ(of_nothing.cost, 0.5);  // the cosine is 0
  EXPECT_EQ(of_nothing.gradient, (std::vector<float>{0, 0, 0}));
  EXPECT_TRUE(std::isnan(
      run("triplet", {}, vectors, {{"p", {TN_F32, {2, 3}, same}}, {"n", {TN_F32, {2, 3}, same}}}, NAN).cost));
}

// ---- classes

TEST(CategoricalFocal, OfLogits) {
  struct Case {
    double gamma = 2;
    Values class_weights = {};
    int64_t ignored = -1;
    bool weighted = false;
    Shape rows = {};
  };
  for (const Case& of : {Case{}, Case{.gamma = 0.5, .rows = {3}}, Case{.gamma = 0, .class_weights = {1, 0.5, 2, 3}},
                         Case{.ignored = 2, .weighted = true},
                         Case{.class_weights = {1, 0.5, 2, 3}, .ignored = 0, .weighted = true, .rows = {2}}}) {
    LayerCase layer;
    layer.type = "categorical_focal";
    layer.attributes = {{"gamma", of.gamma}};
    if (!of.class_weights.empty()) layer.attributes.push_back({"class_weights", of.class_weights});
    if (of.ignored >= 0) layer.attributes.push_back({"ignore_index", of.ignored});
    Shape shape = of.rows;
    shape.push_back(4);
    layer.inputs = {{shape, 0, -4, 4}, {of.rows, 4}};
    if (of.weighted) layer.inputs.push_back({of.rows, 0, 0.5, 2});
    if (of.weighted) layer.inputs[2].limited = true;
    layer.inputs[0].limited = of.gamma != std::floor(of.gamma);  // 1 - p of tiny numbers loses digits to a root
    layer.cost = true;
    layer.samples = {1, 5};
    layer.gradient_rounded = 10;
    layer.formula = [=](const FormulaArguments& a) {
      Values cost(static_cast<size_t>(a.samples));
      const size_t count = a.inputs[1].size();
      for (size_t i = 0; i < count; ++i) {
        const double* x = &a.inputs[0][i * 4];
        const auto label = static_cast<size_t>(a.inputs[1][i]);
        if (static_cast<int64_t>(label) == of.ignored) continue;
        const double most = *std::max_element(x, x + 4);
        double sum = 0, others = 0;
        for (size_t k = 0; k < 4; ++k) sum += std::exp(x[k] - most), others += k == label ? 0 : std::exp(x[k] - most);
        const double weight =
            (of.weighted ? a.inputs[2][i] : 1) * (of.class_weights.empty() ? 1 : of.class_weights[label]);
        cost[i / (count / cost.size())] +=
            weight * std::pow(others / sum, of.gamma) * (std::log(sum) + most - x[label]);
      }
      return cost;
    };
    layer.rounded = [](const FormulaArguments& a) {
      Values rounded(static_cast<size_t>(a.samples), 1.0);
      for (size_t i = 0; i < a.inputs[0].size(); ++i)
        rounded[i / (a.inputs[0].size() / rounded.size())] += 8 * std::abs(a.inputs[0][i]);
      return rounded;
    };
    check(layer);
  }
}

}  // namespace
}  // namespace tenon_tests
