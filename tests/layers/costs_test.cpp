// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/layers/layers_on_a_host.h"
#include "tests/support/layer_check.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;
using OfPair = std::function<double(double, double)>;

// The case of a cost that sums f(input, second) over the values of a sample; without a second input `second` is 0.
LayerCase summed(const std::string& type, const Attributes& attributes, const std::vector<CheckedInput>& inputs,
                 const OfPair& f) {
  LayerCase layer;
  layer.type = type;
  layer.attributes = attributes;
  layer.inputs = inputs;
  layer.cost = true;
  layer.formula = [f](const FormulaArguments& a) {
    Values cost(static_cast<size_t>(a.samples));
    const size_t each = a.samples == 0 ? 0 : a.inputs[0].size() / cost.size();
    for (size_t i = 0; i < a.inputs[0].size(); ++i)
      cost[i / each] += f(a.inputs[0][i], a.inputs.size() > 1 ? a.inputs[1][i] : 0);
    return cost;
  };
  return layer;
}
void check(const LayerCase& layer) { EXPECT_GT(check_layer(layer), 0); }

double softplus(double z) { return z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z)); }

TEST(Costs, SquareError) {
  const OfPair f = [](double x, double y) { return (x - y) * (x - y); };
  check(summed("square_error", {}, {{{3}}, {{3}}}, f));
  check(summed("square_error", {}, {{{2, 5}}, {{2, 5}}}, f));
  check(summed("square_error", {}, {{{1}}, {{}}}, f));  // the output and the label of a regression of one number
  check(summed("square_error", {}, {{{}}, {{}}}, f));
  check(on_rows(summed("square_error", {}, {{{3}}, {{3}}}, f)));
  check(on_rows(summed("square_error", {}, {{{1}}, {{}}}, f), 2));
  check(summed("square_error", {}, {{{}}, {{1}, 9}}, f));  // integer labels
}

TEST(Costs, AbsoluteErrors) {
  // The second input lies above the first one, away from the kink.
  const auto apart = [](const std::string& type, const Attributes& attributes, const OfPair& f) {
    LayerCase layer = summed(type, attributes, {{{3}, 0, -2, -0.1}, {{3}, 0, 0.1, 2}}, f);
    layer.gradient_rounded = 1;
    check(layer);
  };
  apart("absolute_error", {}, [](double x, double y) { return std::abs(x - y); });
  const auto smooth = [](double beta) {
    return [beta](double x, double y) {
      const double e = std::abs(x - y);
      return e < beta ? e * e / (2 * beta) : e - beta / 2;
    };
  };
  check(summed("smooth_l1", {}, {{{3}}, {{3}}}, smooth(1)));
  check(summed("smooth_l1", {{"beta", 0.5}}, {{{2, 2}}, {{2, 2}}}, smooth(0.5)));
}

TEST(Costs, Likelihoods) {
  LayerCase poisson = summed("poisson_nll", {}, {{{3}, 0, -2, 2}, {{3}, 0, 0, 4}},
                             [](double x, double y) { return std::exp(x) - y * x; });
  poisson.gradient_rounded = 4;
  poisson.inputs[0].limited = true;
  check(poisson);
  poisson = summed("poisson_nll", {{"log_input", false}}, {{{3}, 0, 0.3, 4}, {{3}, 0, 0, 4}},
                   [](double x, double y) { return x - y * std::log(x); });
  poisson.gradient_rounded = 4;
  poisson.inputs[0].limited = true;
  check(poisson);
  LayerCase gaussian = summed("gaussian_nll", {}, {{{3}}, {{3}}, {{3}, 0, 0.5, 2}}, nullptr);
  gaussian.inputs[2].limited = true;
  gaussian.gradient_rounded = 4;
  gaussian.formula = [](const FormulaArguments& a) {
    Values cost(static_cast<size_t>(a.samples));
    for (size_t i = 0; i < a.inputs[0].size(); ++i) {
      const double e = a.inputs[0][i] - a.inputs[1][i];
      cost[i / 3] += (std::log(a.inputs[2][i]) + e * e / a.inputs[2][i]) / 2;
    }
    return cost;
  };
  check(gaussian);
}

TEST(Costs, BinaryCrossEntropy) {
  const OfPair of_probability = [](double p, double y) { return -(y * std::log(p) + (1 - y) * std::log(1 - p)); };
  LayerCase layer = summed("binary_cross_entropy", {}, {{{3}, 0, 0.1, 0.9}, {{3}, 0, 0, 1}}, of_probability);
  layer.inputs[0].limited = layer.inputs[1].limited = true;
  layer.gradient_rounded = 4;
  check(layer);
  const auto of_logit = [](double positive) {
    return [positive](double x, double y) { return positive * y * softplus(-x) + (1 - y) * softplus(x); };
  };
  for (const double positive : {1.0, 2.5}) {
    layer = summed("binary_cross_entropy", {{"from_logits", true}, {"positive_weight", positive}},
                   {{{2, 2}, 0, -4, 4}, {{2, 2}, 0, 0, 1}}, of_logit(positive));
    layer.inputs[1].limited = true;
    layer.gradient_rounded = 10;
    check(layer);
  }
  // A weight for each value, or for each sample.
  for (const bool each : {true, false}) {
    layer = summed("binary_cross_entropy", {{"from_logits", true}},
                   {{{3}, 0, -4, 4}, {{3}, 0, 0, 1}, {each ? Shape{3} : Shape{}, 0, 0.5, 2}}, nullptr);
    layer.inputs[1].limited = layer.inputs[2].limited = true;
    layer.gradient_rounded = 20;
    layer.formula = [=](const FormulaArguments& a) {
      Values cost(static_cast<size_t>(a.samples));
      for (size_t i = 0; i < a.inputs[0].size(); ++i)
        cost[i / 3] += a.inputs[2][each ? i : i / 3] * of_logit(1)(a.inputs[0][i], a.inputs[1][i]);
      return cost;
    };
    check(layer);
  }
}

TEST(Costs, FocalAndDice) {
  const auto focal = [](double gamma, double alpha) {
    return [=](double x, double y) {
      const double z = y > 0 ? x : -x;
      return (y > 0 ? alpha : 1 - alpha) * std::exp(-gamma * softplus(z)) * softplus(-z);
    };
  };
  LayerCase layer = summed("focal", {}, {{{3}, 0, -4, 4}, {{3}, 2}}, focal(2, 0.25));
  layer.gradient_rounded = 2;
  check(layer);
  layer = summed("focal", {{"gamma", 0.5}, {"alpha", 0.6}}, {{{3}, 0, -4, 4}, {{3}, 2}}, focal(0.5, 0.6));
  layer.gradient_rounded = 2;
  check(layer);
  layer = summed("dice", {{"smooth", 0.5}}, {{{4}, 0, 0.1, 1}, {{4}, 0, 0.1, 1}}, nullptr);
  layer.inputs[0].limited = layer.inputs[1].limited = true;
  layer.gradient_rounded = 1;
  layer.formula = [](const FormulaArguments& a) {
    Values cost;
    for (size_t i = 0; i < a.inputs[0].size(); i += 4) {
      double both = 0, all = 0;
      for (size_t k = i; k < i + 4; ++k) {
        both += a.inputs[0][k] * a.inputs[1][k];
        all += a.inputs[0][k] * a.inputs[0][k] + a.inputs[1][k] * a.inputs[1][k];
      }
      cost.push_back(1 - (2 * both + 0.5) / (all + 0.5));
    }
    return cost;
  };
  check(layer);
}

TEST(Costs, HuberOnBothSidesOfDelta) {
  const auto huber = [](double delta) {
    return [delta](double x, double y) {
      const double e = std::abs(x - y);
      return e <= delta ? e * e / 2 : delta * (e - delta / 2);
    };
  };
  check(summed("huber", {}, {{{3}}, {{3}}}, huber(1)));
  check(summed("huber", {{"delta", 0.25}}, {{{2, 3}}, {{2, 3}}}, huber(0.25)));
  check(summed("huber", {{"delta", 100.0}}, {{{3}}, {{3}}}, huber(100)));
}

TEST(Costs, Hinge) {
  const auto hinge = [](double margin) {
    return [margin](double x, double label) { return std::max(0.0, margin - (label > 0 ? x : -x)); };
  };
  check(summed("hinge", {{"margin", 0.0}}, {{{3}, 0, -2, 2, 0, 1e-2}, {{3}, 2}}, hinge(0)));
  check(summed("hinge", {}, {{{3}, 0, -0.9, 0.9}, {{3}, 2}}, hinge(1)));  // every value has a cost above 0
  check(summed("hinge", {}, {{{1}, 0, -3, 3, 1, 1e-2}, {{}, 2}}, hinge(1)));
}

TEST(Costs, ShouldBe) {
  for (const double far : {3.0, 500.0}) {
    const CheckedInput one{{1}, 0, -far, far}, more{{2, 3}, 0, -far, far};
    for (const CheckedInput& input : {one, more}) {
      check(summed("should_be_true", {}, {input}, [](double x, double) { return softplus(-x); }));
      check(summed("should_be_false", {}, {input}, [](double x, double) { return softplus(x); }));
    }
  }
}

TEST(Costs, SumCost) {
  const OfPair f = [](double x, double) { return x; };
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{2, 3}}) check(summed("sum_cost", {}, {{shape}}, f));
  check(on_rows(summed("sum_cost", {}, {{{3}}}, f), 2));
}

TEST(Costs, LessThan) {
  const auto soft = [](double temperature) {
    return [temperature](double a, double b) { return softplus((a - b) / temperature); };
  };
  const auto hinge = [](double margin) {
    return [margin](double a, double b) { return std::max(0.0, a - b + margin); };
  };
  check(summed("less_than", {}, {{{}}, {{}}}, soft(1)));
  check(summed("less_than", {{"temperature", 0.1}}, {{{3}}, {{3}}}, soft(0.1)));
  check(summed("less_than", {}, {{{}, 0, -500, 500}, {{}, 0, -500, 500}}, soft(1)));
  check(summed("less_than", {{"form", "hinge"}}, {{{1}}, {{}}}, hinge(1)));
  check(summed("less_than", {{"form", "hinge"}, {"margin", 0.25}}, {{{3}}, {{3}}}, hinge(0.25)));
}

TEST(Costs, RankCost) {
  for (const bool weighted : {false, true})
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}}) {
      LayerCase layer;
      layer.type = "rank_cost";
      layer.inputs = {{shape, 0, -9, 9}, {shape, 0, -9, 9}, {shape, 0, 0, 1}};
      layer.inputs[2].limited = true;
      if (weighted) layer.inputs.push_back({shape, 0, 0, 3});
      layer.cost = true;
      layer.formula = [weighted](const FormulaArguments& a) {
        Values cost(static_cast<size_t>(a.samples));
        const size_t each = a.samples == 0 ? 0 : a.inputs[0].size() / cost.size();
        for (size_t i = 0; i < a.inputs[0].size(); ++i) {
          const double o = a.inputs[0][i] - a.inputs[1][i], t = a.inputs[2][i];  // cross-entropy of sigmoid(o)
          cost[i / each] += (weighted ? a.inputs[3][i] : 1) * (t * softplus(-o) + (1 - t) * softplus(o));
        }
        return cost;
      };
      check(layer);
    }
}

TEST(Costs, KlDivergence) {
  for (const bool from_logits : {false, true})
    for (const int64_t classes : {1, 10, 301}) {
      LayerCase layer;
      layer.type = "kl_divergence";
      layer.attributes = {{"from_logits", from_logits}};
      // Not normalised: the formula holds for any positive numbers.
      layer.inputs = {{{classes}, 0, from_logits ? -5.0 : 0.1, from_logits ? 5.0 : 0.9}, {{classes}, 0, 0.05, 0.5}};
      for (CheckedInput& input : layer.inputs) input.limited = input.low > 0;
      layer.cost = true;
      layer.samples = {1, 5};
      layer.formula = [=](const FormulaArguments& a) {
        const auto n = static_cast<size_t>(classes);
        Values cost(static_cast<size_t>(a.samples));
        for (size_t i = 0; i < cost.size(); ++i) {
          const double* x = a.inputs[0].data() + i * n;
          const double most = *std::max_element(x, x + n);
          double sum = 0;
          for (size_t k = 0; k < n; ++k) sum += std::exp(x[k] - most);
          for (size_t k = i * n; k < (i + 1) * n; ++k) {
            const double log_q = from_logits ? a.inputs[0][k] - most - std::log(sum) : std::log(a.inputs[0][k]);
            cost[i] += a.inputs[1][k] * (std::log(a.inputs[1][k]) - log_q);
          }
        }
        return cost;
      };
      check(layer);
    }
}

class CostsOnAHost : public LayersOnAHost {
 protected:
  // The cost of each sample.
  Values cost_of(const Layer& cost, const std::vector<Feed>& feeds) {
    MachineOptions options;
    options.max_samples = feeds[0].values.shape[0];
    const Machine machine = host_.machine(host_.parameters({cost}, 1), {cost}, options);
    machine.forward(feeds);
    const Array output = machine.output(cost);
    const auto* values = static_cast<const float*>(output.data);
    return {values, values + output.count()};
  }
};

TEST_F(CostsOnAHost, MistakesNamePortAndShapes) {
  const Layer x = data("x", {3}), y = data("y", {4}), label = data("label", {4}, TN_I32);
  for (const std::string type : {"square_error", "huber", "hinge", "less_than", "kl_divergence"}) {
    const std::string said = mistake(type, {x, type == "hinge" ? label : y});
    EXPECT_NE(said.find(type == "less_than" ? "b: " : "label: "), std::string::npos) << said;
    EXPECT_NE(said.find("[samples, 3]"), std::string::npos) << said;
    EXPECT_NE(said.find("[samples, 4]"), std::string::npos) << said;
  }
  EXPECT_NE(mistake("hinge", {x, x}).find("expected integers"), std::string::npos);
  EXPECT_NE(mistake("should_be_true", {x, x, x}).find("expected 1 to 2 inputs, got 3"), std::string::npos);
  EXPECT_NE(mistake("kl_divergence", {data("p", {}), data("q", {})}).find("[samples, classes]"), std::string::npos);
  // A label of one value per sample is not broadcast to several values.
  EXPECT_NE(mistake("square_error", {x, data("z", {})}).find("must have the shape"), std::string::npos);
}

TEST_F(CostsOnAHost, ShareOfWhatIsLess) {
  const Layer share = host_.layer("less_than_share", {data("a", {1}), data("b", {})}, {}, "share");
  const Layer pair = host_.layer("less_than_share", {data("c", {2}), data("d", {2})}, {}, "pair");
  MachineOptions options;
  options.max_samples = 4;
  const Machine machine = host_.machine(host_.parameters({share, pair}, 1), {share, pair}, options);
  const float a[] = {1, 2, 3, NAN}, b[] = {2, 2, 2, 2};
  const float c[] = {0, 0, 0, 0, 0, NAN, 0, 0}, d[] = {1, 1, 1, 0, 1, 1, 1, 2};  // c < d in samples 0 and 3
  const auto shares = [&](int64_t samples) {
    machine.forward({{"a", {TN_F32, {samples, 1}, a}},
                     {"b", {TN_F32, {samples}, b}},
                     {"c", {TN_F32, {samples, 2}, c}},
                     {"d", {TN_F32, {samples, 2}, d}}});
    const std::vector<Metric> metrics = machine.metrics();
    return Values{metrics.at(0).value, metrics.at(1).value};
  };
  EXPECT_EQ(shares(4), (Values{0.25, 0.5}));
  EXPECT_EQ(shares(1), (Values{1, 1}));
  EXPECT_EQ(shares(0), (Values{0, 0}));
  EXPECT_NE(mistake("less_than_share", {data("e", {3}), data("f", {4})}).find("[samples, 4]"), std::string::npos);
}

TEST_F(CostsOnAHost, AttributesHaveRanges) {
  const Layer x = data("x", {3}), label = data("label", {3}, TN_I32);
  EXPECT_NE(mistake("huber", {x, x}, {{"delta", 0.0}}).find("delta"), std::string::npos);
  EXPECT_NE(mistake("hinge", {x, label}, {{"margin", -1.0}}).find("margin"), std::string::npos);
  EXPECT_NE(mistake("less_than", {x, x}, {{"temperature", 0.0}}).find("temperature"), std::string::npos);
  EXPECT_NE(mistake("less_than", {x, x}, {{"form", "softmax"}}).find("form"), std::string::npos);
  // An attribute that the chosen form ignores is refused.
  EXPECT_NE(mistake("less_than", {x, x}, {{"margin", 0.5}}).find("softplus"), std::string::npos);
  EXPECT_NE(mistake("less_than", {x, x}, {{"form", "hinge"}, {"temperature", 2.0}}).find("hinge"), std::string::npos);
}

TEST_F(CostsOnAHost, HingeLabelsAreChecked) {
  const Layer hinge = host_.layer("hinge", {data("x", {}), data("label", {}, TN_I32)}, {}, "hinge");
  const float x[] = {0.25F, 0.25F};
  const int32_t right[] = {1, 0}, wrong[] = {1, -1};
  EXPECT_EQ(cost_of(hinge, {{"x", {TN_F32, {2}, x}}, {"label", {TN_I32, {2}, right}}}), (Values{0.75, 1.25}));
  EXPECT_THROW(cost_of(hinge, {{"x", {TN_F32, {2}, x}}, {"label", {TN_I32, {2}, wrong}}}), Error);
}

// A class with q = 0 adds nothing if p is 0, and a finite cost if p is above 0.
TEST_F(CostsOnAHost, KlDivergenceOfImpossibleClasses) {
  const Layer cost = host_.layer("kl_divergence", {data("q", {2}), data("p", {2})}, {}, "cost");
  const float q[] = {0.5F, 0.5F, 1, 0, 0, 1}, p[] = {1, 0, 1, 0, 1, 0};
  const Values costs = cost_of(cost, {{"q", {TN_F32, {3, 2}, q}}, {"p", {TN_F32, {3, 2}, p}}});
  EXPECT_NEAR(costs[0], std::log(2.0), 1e-6);
  EXPECT_EQ(costs[1], 0);
  EXPECT_NEAR(costs[2], 30 * std::log(10.0), 1e-4);
}

// The slope of softplus at 0 is 1/2, though its terms have a kink there.
TEST_F(CostsOnAHost, SlopeAtZero) {
  const auto gradient = [&](const std::string& type, const Attributes& attributes) {
    const Layer x = host_.layer("fc", {data("x_" + type, {1})}, {{"size", 1}, {"bias", false}}, "fc_" + type);
    const Layers inputs = type == "less_than" ? Layers{x, data("zero", {})} : Layers{x};
    const Layer cost = host_.layer(type, inputs, attributes, "cost_" + type);
    const Parameters parameters = host_.parameters({cost}, 1);
    const std::string name = "fc_" + type + ".weight";
    const float none = 0, one = 1;
    parameters.set(name, {TN_F32, {1, 1}, &none});
    MachineOptions options;
    options.max_samples = 1;
    options.training = true;
    const Machine machine = host_.machine(parameters, {cost}, options);
    std::vector<Feed> feeds{{"x_" + type, {TN_F32, {1, 1}, &one}}};
    if (inputs.size() > 1) feeds.push_back({"zero", {TN_F32, {1}, &none}});
    machine.forward(feeds);
    machine.backward();
    return *static_cast<const float*>(machine.gradient(name).data);
  };
  EXPECT_EQ(gradient("should_be_true", {}), -0.5F);
  EXPECT_EQ(gradient("should_be_false", {}), 0.5F);
  EXPECT_EQ(gradient("less_than", {{"temperature", 0.25}}), 2.0F);
}

// A ranking by cross-entropies: A should be nearer to Q than B is, and Q is trained too.
TEST_F(CostsOnAHost, LessThanComparesCosts) {
  const auto distribution = [&](const char* name) {
    return host_.layer("softmax", {data(name, {3})}, {{"size", 4}, {"parameter_name", "semantic"}},
                       name + std::string("_f"));
  };
  const Layer a = distribution("a"), b = distribution("b"), q = distribution("q");
  const Layer cost = host_.layer(
      "less_than", {host_.layer("cross_entropy", {a, q}, {}, "near"), host_.layer("cross_entropy", {b, q}, {}, "far")},
      {}, "cost");
  const Parameters parameters = host_.parameters({cost}, 1);
  MachineOptions options;
  options.max_samples = 2;
  options.training = true;
  const Machine machine = host_.machine(parameters, {cost}, options);
  const float values[] = {1, -1, 0.5F, 2, 0, -1};
  const auto feed = [&](const char* name, float* of) { return Feed{name, {TN_F32, {2, 3}, of}}; };
  float va[6], vb[6], vq[6];
  for (int i = 0; i < 6; ++i) va[i] = values[i], vb[i] = -values[i], vq[i] = values[5 - i];
  machine.forward({feed("a", va), feed("b", vb), feed("q", vq)});
  machine.backward();
  const Array gradient = machine.gradient("semantic.weight");
  const auto* g = static_cast<const float*>(gradient.data);
  EXPECT_TRUE(std::any_of(g, g + gradient.count(), [](float value) { return std::abs(value) > 1e-3F; }));
  machine.forward({feed("a", va), feed("b", va), feed("q", vq)});  // equal costs
  EXPECT_NEAR(machine.cost(), std::log(2.0), 1e-6);
}

}  // namespace
}  // namespace tenon_tests
