// The numbers that layers take: masks of 0 and 1, probabilities, counts. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tenon/tenon_cond.hpp>
#include <tenon/tenon_scan.hpp>

#include "tests/layers/layers_on_a_host.h"

namespace tenon_tests {
namespace {

using namespace tenon;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Floats = std::vector<float>;

// A feed of floats, [samples, shape...].
struct Fed {
  std::string name;
  std::vector<int64_t> shape;
  Floats values;
};

class NumberChecks : public LayersOnAHost {
 protected:
  [[nodiscard]] Machine machine(const Layers& outputs) const {
    MachineOptions options;
    options.max_samples = 8;
    return host_.machine(host_.parameters(outputs, 1), outputs, options);
  }
  // Feeds a machine that computes `outputs`; returns the message of the failure of this code, or "".
  [[nodiscard]] std::string failure(const Layers& outputs, const std::vector<Fed>& feeds,
                                    tn_status code = TN_BAD_DATA) const {
    std::vector<Feed> arrays;
    for (const Fed& fed : feeds) arrays.push_back({fed.name, {TN_F32, fed.shape, fed.values.data()}});
    try {
      machine(outputs).forward(arrays);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "";
  }
};

// ---- masks

TEST_F(NumberChecks, AMaskIsZeroOrOne) {
  const Layer query = data("q", {3, 4});
  const float never = -1e9F, infinity = INFINITY;
  for (const char* const type : {"attention", "multi_head_attention"}) {
    for (const bool each : {false, true}) {
      const std::vector<int64_t> shape = each ? std::vector<int64_t>{3, 3} : std::vector<int64_t>{3};
      const Layer layer = host_.layer(type, {query, query, query, data("m", shape)}, {}, "seen");
      const auto fed = [&](float number) {
        std::vector<int64_t> all = shape;
        all.insert(all.begin(), 2);
        Floats mask(each ? 18 : 6, 1.0F);
        mask[each ? 10 : 4] = number;
        return failure({layer}, {{"q", {2, 3, 4}, Floats(24, 0.5F)}, {"m", all, mask}});
      };
      EXPECT_EQ(fed(0), "") << type;
      EXPECT_EQ(fed(1), "") << type;
      for (const float number : {never, -infinity, infinity, 0.5F, 2.0F, -1.0F, 1e-30F})
        EXPECT_THAT(fed(number), AllOf(HasSubstr("data layer \"m\": sample 1 of the minibatch is "), HasSubstr("seen"),
                                       HasSubstr(" needs 0 or 1; 1 makes a key visible")))
            << type << " " << number;
      EXPECT_THAT(fed(-infinity), HasSubstr("is -inf;"));
    }
  }
  const Layer filled = host_.layer("masked_fill", {query, data("m", {3, 4})}, {}, "filled");
  Floats mask(24, 0.0F);
  mask[13] = never;
  EXPECT_THAT(failure({filled}, {{"q", {2, 3, 4}, Floats(24, 1.0F)}, {"m", {2, 3, 4}, mask}}),
              HasSubstr("sample 1 of the minibatch is -1e+09; layer \"filled\" needs 0 or 1"));
}

TEST_F(NumberChecks, AMaskOfIntegersIsZeroOrOne) {
  const Layer query = data("q", {2, 3});
  const Layer layer = host_.layer("attention", {query, query, query, data("m", {2}, TN_I64)}, {}, "seen");
  const Machine made = machine({layer});
  const Floats values(6, 0.5F);
  std::vector<int64_t> mask = {0, 1};
  const auto forward = [&] {
    made.forward({{"q", {TN_F32, {1, 2, 3}, values.data()}}, {"m", {TN_I64, {1, 2}, mask.data()}}});
  };
  EXPECT_NO_THROW(forward());
  for (const int64_t number : {int64_t{2}, int64_t{-1}}) {
    mask[1] = number;
    EXPECT_THAT(forward, testing::ThrowsMessage<Error>(HasSubstr("data layer \"m\": sample 0 of the minibatch is " +
                                                                 std::to_string(number) + "; ")));
  }
}

// Even one that begins with 0 and 1: it would be trained away from them, or stay as it is for want of a derivative.
TEST_F(NumberChecks, AMaskIsNotTrained) {
  const Layer query = data("q", {3, 4});
  const Layer bias = host_.layer("parameter", {query}, {{"shape", std::vector<int64_t>{3, 3}}}, "relative");
  const auto seen = [&](const Layer& mask) {
    return host_.layer("attention", {query, query, query, mask}, {}, "seen");
  };
  const std::vector<Fed> feeds = {{"q", {2, 3, 4}, Floats(24, 0.5F)}};
  const auto expected = AllOf(HasSubstr("input \"mask\" is computed from \"relative.value\", a trained parameter"),
                              HasSubstr("expected 0 or 1"), HasSubstr("are a bias"));
  EXPECT_THAT(failure({seen(bias)}, feeds, TN_INVALID), expected);
  const Layer wide = host_.layer("parameter", {query}, {{"shape", std::vector<int64_t>{9}}}, "relative");
  EXPECT_THAT(
      failure({seen(host_.layer("reshape", {wide}, {{"shape", std::vector<int64_t>{3, 3}}}))}, feeds, TN_INVALID),
      expected);
  EXPECT_THAT(failure({seen(host_.layer("relu", {bias}))}, feeds, TN_INVALID), expected);
  EXPECT_THAT(failure({seen(host_.layer("flip", {bias}, {{"axes", std::vector<int64_t>{1}}}))}, feeds, TN_INVALID),
              expected);
  // A comparison of trained numbers is 0 or 1.
  const Layer zero =
      host_.layer("constant", {query}, {{"shape", std::vector<int64_t>{3, 3}}, {"value", std::vector<double>{0.0}}});
  EXPECT_EQ(failure({seen(host_.layer("greater_equal", {bias, zero}))}, feeds), "");
  const Layer formula = host_.layer("formula", {bias}, {{"formula", "where(x > 0.5, 1, 0)"}});
  EXPECT_EQ(failure({seen(formula)}, feeds), "");
}

TEST_F(NumberChecks, AComputedMaskIsChecked) {
  const Layer query = data("q", {3, 4}), m = data("m", {3});
  const auto seen = [&](const Layer& mask) {
    return host_.layer("attention", {query, query, query, mask}, {}, "seen");
  };
  const auto fed = [&](const Layer& mask, const Floats& values) {
    return failure({seen(mask)}, {{"q", {2, 3, 4}, Floats(24, 0.5F)}, {"m", {2, 3}, values}}, TN_INVALID);
  };
  const Layer twice = host_.layer("formula", {m}, {{"formula", "2 * x"}}),
              same = host_.layer("reshape", {m}, {{"shape", std::vector<int64_t>{3}}});
  EXPECT_EQ(fed(twice, {0, 0.5F, 0, 0.5F, 0, 0}), "");
  EXPECT_THAT(fed(twice, {0, 0, 0, 0.5F, 1, 0}),
              AllOf(HasSubstr("input \"mask\": sample 1 of the minibatch is 2; expected 0 or 1"), HasSubstr("seen")));
  EXPECT_THAT(fed(same, {0, 0, -INFINITY, 0, 0, 0}), HasSubstr("sample 0 of the minibatch is -inf"));
}

// ---- probabilities, counts and labels

// An input of a cost or metric, by number: one that it takes, and others that it does not.
struct Domain {
  std::string type;
  Attributes attributes;
  size_t input;
  Floats taken, refused;
  std::string needs;
  std::vector<float> others;  // what the inputs are fed, by number
};

std::vector<Domain> domains() {
  const Floats shares = {0, 0.5F, 1, -5e-5F, 1.00005F, NAN}, none = {-1, -0.01F, 1.01F, 3, INFINITY, -INFINITY};
  const Floats counts = {0, 0.5F, 7, NAN}, negative = {-0.01F, -1, -INFINITY};
  const std::string unit = "needs 0 to 1", least = "needs at least 0";
  return {
      {"cross_entropy", {}, 0, shares, none, unit, {0.5F, 0.5F}},
      {"cross_entropy", {}, 1, shares, none, unit, {0.5F, 0.5F}},
      {"cross_entropy", {{"from_logits", true}}, 1, shares, none, unit, {0.5F, 0.5F}},
      {"cross_entropy", {{"from_logits", true}}, 0, {-3, 7}, {}, "", {0.5F, 0.5F}},
      {"binary_cross_entropy", {}, 0, shares, none, unit, {0.5F, 0.5F}},
      {"binary_cross_entropy", {}, 1, shares, none, unit, {0.5F, 0.5F}},
      {"binary_cross_entropy", {{"from_logits", true}}, 1, shares, none, unit, {0.5F, 0.5F}},
      {"binary_cross_entropy", {{"from_logits", true}}, 0, {-3, 7}, {}, "", {0.5F, 0.5F}},
      {"binary_cross_entropy", {{"ignore_index", int64_t{-1}}}, 1, {0, 1, -1}, {-2, 2}, "0 to 1, or -1", {0.5F, 0.5F}},
      {"kl_divergence", {}, 0, shares, none, unit, {0.5F, 0.5F}},
      {"kl_divergence", {{"from_logits", true}}, 1, shares, none, unit, {0.5F, 0.5F}},
      {"dice", {}, 0, shares, none, unit, {0.5F, 0.5F}},
      {"dice", {}, 1, shares, none, unit, {0.5F, 0.5F}},
      {"rank_cost", {}, 2, shares, none, unit, {0.5F, 0.5F, 0.5F}},
      {"poisson_nll", {}, 1, counts, negative, least, {0.5F, 0.5F}},
      {"poisson_nll", {}, 0, {-3, 3}, {}, "", {0.5F, 0.5F}},
      {"poisson_nll", {{"log_input", false}}, 0, counts, negative, least, {0.5F, 0.5F}},
      {"gaussian_nll", {}, 2, counts, negative, least, {0.5F, 0.5F, 0.5F}},
      {"margin_ranking", {}, 2, {-1, 1, 0.5F}, {0, -2, 2}, "needs -1 to 1, but not 0", {0.5F, 0.5F, 1.0F}},
      {"mean_average_precision", {}, 0, shares, none, unit, {0.5F, 1.0F}},
      {"mean_average_precision", {}, 1, {0, 1}, {-1, 0.5F, 2}, "needs 0 or 1", {0.5F, 1.0F}},
      {"mean_average_precision", {{"low", -2.0}}, 0, {-3, 3}, {}, "", {0.5F, 1.0F}},
      {"mean_average_precision", {{"from_logits", true}}, 0, {-3, 3}, {}, "", {0.5F, 1.0F}},
      {"multi_label", {}, 0, shares, none, unit, {0.5F, 1.0F}},
      {"multi_label", {{"threshold", 0.0}}, 0, {-3, 3}, {}, "", {0.5F, 1.0F}},
      {"multi_label", {}, 1, {0, 1}, {-1, 0.5F, 2}, "needs 0 or 1", {0.5F, 1.0F}},
      {"draw_class", {}, 0, counts, negative, least, {0.5F}},
      {"draw_class", {{"from_logits", true}}, 0, {-3, 3}, {}, "", {0.5F}},
  };
}

// A value is wrong at one place of the second sample, and where a weight is 0 it may be anything.
TEST_F(NumberChecks, CostsAndMetricsRefuseNumbersOutsideOfTheirDomain) {
  for (const Domain& of : domains()) {
    const auto fed = [&](float number, const Floats& weights) {
      Layers inputs;
      std::vector<Fed> feeds;
      for (size_t i = 0; i < of.others.size(); ++i) {
        const std::string name = "in" + std::to_string(i);
        inputs.push_back(data(name, {3}));
        feeds.push_back({name, {2, 3}, Floats(6, of.others[i])});
      }
      feeds[of.input].values[4] = number;
      if (!weights.empty()) {
        inputs.push_back(data("weight", {}));
        feeds.push_back({"weight", {2}, weights});
      }
      return failure({host_.layer(of.type, inputs, of.attributes, "of")}, feeds);
    };
    const std::string name = "data layer \"in" + std::to_string(of.input) + "\": sample 1 of the minibatch is ";
    for (const float number : of.taken) EXPECT_EQ(fed(number, {}), "") << of.type << " " << number;
    for (const float number : of.refused)
      EXPECT_THAT(fed(number, {}), AllOf(HasSubstr(name), HasSubstr("; layer \"of\" "), HasSubstr(of.needs)))
          << of.type << " " << number;
    const bool weighted = of.type != "mean_average_precision" && of.type != "multi_label" && of.type != "draw_class" &&
                          of.type != "rank_cost";
    if (!weighted || of.refused.empty()) continue;
    EXPECT_THAT(fed(of.refused[0], {0, 1}), HasSubstr(name)) << of.type;
    EXPECT_EQ(fed(of.refused[0], {1, 0}), "") << of.type;
  }
}

// Weights of positions and of values.
TEST_F(NumberChecks, AWeightOfZeroExemptsItsPosition) {
  const Layer p = data("p", {2, 3}), y = data("y", {2, 3}), w = data("w", {2});
  const Layer cost = host_.layer("cross_entropy", {p, y, w}, {}, "cost");
  const auto fed = [&](size_t wrong) {
    Floats values(12, 0.25F);
    values[wrong] = 4;
    return failure({cost}, {{"p", {2, 2, 3}, Floats(12, 0.5F)}, {"y", {2, 2, 3}, values}, {"w", {2, 2}, {1, 1, 1, 0}}});
  };
  EXPECT_THAT(fed(2), HasSubstr("sample 0"));
  EXPECT_THAT(fed(8), HasSubstr("sample 1 of the minibatch is 4"));
  EXPECT_EQ(fed(10), "");
  const Layer s = data("s", {3}), t = data("t", {3}), v = data("v", {3});
  const Layer binary = host_.layer("binary_cross_entropy", {s, t, v}, {{"from_logits", true}}, "cost");
  const auto each = [&](size_t wrong) {
    Floats values(6, 1.0F);
    values[wrong] = -1;
    return failure({binary},
                   {{"s", {2, 3}, Floats(6, 0.5F)}, {"t", {2, 3}, values}, {"v", {2, 3}, {1, 1, 0, 1, 0, 1}}});
  };
  EXPECT_THAT(each(5), HasSubstr("data layer \"t\": sample 1 of the minibatch is -1"));
  EXPECT_EQ(each(2), "");
  EXPECT_EQ(each(4), "");
}

TEST_F(NumberChecks, ScoresAreNoProbabilities) {
  const Layer x = data("x", {3}), y = data("y", {}, TN_F32);
  const Layer label = host_.layer("reshape", {host_.layer("slice", {x}, {{"axis", 1}, {"start", 0}, {"length", 1}})},
                                  {{"shape", std::vector<int64_t>{}}});
  const std::vector<Fed> feeds = {{"x", {3, 3}, {0, 1, 2, 1, 0.5F, 0, 1, 3, -4}}};
  const auto binary = [&](const Layer& input, const Attributes& attributes = {}) {
    return failure({host_.layer("binary_cross_entropy", {input, label}, attributes, "cost")}, feeds, TN_INVALID);
  };
  const Layer score = host_.layer("formula", {label}, {{"formula", "3 * x - 1"}});
  EXPECT_THAT(binary(score), AllOf(HasSubstr("layer \"cost\" (binary_cross_entropy): input \"input\": sample 0 of the "
                                             "minibatch is -1; expected 0 to 1"),
                                   HasSubstr("from_logits = true")));
  EXPECT_EQ(binary(score, {{"from_logits", true}}), "");
  EXPECT_EQ(binary(host_.layer("sigmoid", {score})), "");
  EXPECT_EQ(binary(host_.layer("clip", {score}, {{"low", 0.0}, {"high", 1.0}})), "");
  EXPECT_EQ(binary(host_.layer("formula", {score}, {{"formula", "1 / (1 + exp(-x))"}})), "");
  // Softmax, by act and as a mixture; sums that rounding puts above 1.
  const auto entropy = [&](const Layer& input) {
    return failure({host_.layer("cross_entropy", {input, host_.layer("softmax", {x})}, {}, "cost")}, feeds, TN_INVALID);
  };
  EXPECT_THAT(
      entropy(host_.layer(
          "fc", {x}, {{"size", 3}, {"bias", true}, {"param.bias.init", "constant"}, {"param.bias.init_value", -9.0}})),
      HasSubstr("from_logits = true"));
  EXPECT_EQ(entropy(host_.layer("fc", {x}, {{"size", 3}, {"act", "softmax"}})), "");
  const Layer one = host_.layer("softmax", {x}), two = host_.layer("softmax", {host_.layer("square", {x})});
  EXPECT_EQ(entropy(host_.layer("formula", {one, two}, {{"formula", "0.3 * x + 0.7 * y"}})), "");
  EXPECT_EQ(entropy(host_.layer("formula", {one}, {{"formula", "x * 1.0000002"}})), "");
  EXPECT_THAT(entropy(host_.layer("add", {one, two})), HasSubstr("expected 0 to 1"));
}

TEST_F(NumberChecks, AreasUnderTheCurveAreOfProbabilities) {
  const Layer x = data("x", {}), y = data("y", {}, TN_I64);
  const auto area = [&](const Attributes& attributes, const Floats& scores, const std::string& type = "auc") {
    const Layer metric = host_.layer(type, {x, y}, attributes, "area");
    const Machine made = machine({metric});
    const std::vector<int64_t> labels = {0, 0, 1, 1};
    made.forward({{"x", {TN_F32, {4}, scores.data()}}, {"y", {TN_I64, {4}, labels.data()}}});
  };
  EXPECT_NO_THROW(area({}, {0, 0.2F, 0.9F, 1}));
  EXPECT_THAT(
      [&] {
        area({}, {0, 0.2F, 4.5F, 1});
      },
      testing::ThrowsMessage<Error>(AllOf(HasSubstr("sample 2 of the minibatch is 4.5"), HasSubstr("from_logits"))));
  EXPECT_NO_THROW(area({{"from_logits", true}}, {-3, -2, 4.5F, 1}));
  EXPECT_NO_THROW(area({{"low", -2.0}, {"high", 2.0}}, {-3, -2, 4.5F, 1}));
  // Of the shares above a threshold, too, unless the user chose it.
  EXPECT_NO_THROW(area({}, {0, 0.2F, 0.9F, 1}, "precision_recall"));
  EXPECT_THAT(
      [&] {
        area({}, {0, 0.2F, -0.5F, 1}, "precision_recall");
      },
      testing::ThrowsMessage<Error>(AllOf(HasSubstr("sample 2 of the minibatch is -0.5"), HasSubstr("threshold = 0"))));
  EXPECT_NO_THROW(area({{"threshold", 0.0}}, {-3, -2, 4.5F, 1}, "precision_recall"));
}

// ---- places

TEST_F(NumberChecks, WithinScansAndBranches) {
  const Layer x = sequences("x", {2});
  const auto filled = [&](bool by_memory) {
    return scan({x},
                [&](Step& step) {
                  const Layer h = step.memory({2});
                  const Layer next = host_.layer("formula", {step.input(0), h}, {{"formula", "0.5 * x + 0.5 * y"}});
                  step.next(h, next);
                  return Layers{host_.layer("masked_fill", {next, by_memory ? next : step.input(0)}, {}, "filled")};
                })
        .results[0];
  };
  const Layer of_row = filled(false), of_memory = filled(true);
  const auto fed = [&](const Layer& output, const Floats& rows) {
    const Machine made = machine({output});
    const std::vector<int64_t> offsets = {0, 1, 3};
    made.forward({{"x", Array::sequences(TN_F32, {3, 2}, rows.data(), 2, offsets.data())}});
  };
  EXPECT_NO_THROW(fed(of_row, {1, 0, 0, 1, 1, 1}));
  EXPECT_THAT(
      [&] {
        fed(of_row, {1, 0, 0, 1, 1, 5});
      },
      testing::ThrowsMessage<Error>(HasSubstr("of the minibatch is 5; layer \"filled\" needs 0 or 1")));
  EXPECT_NO_THROW(fed(of_memory, {0, 0, 0, 0, 0, 0}));
  EXPECT_THAT(
      [&] {
        fed(of_memory, {0, 0, 0, 0, 1, 0});
      },
      testing::ThrowsMessage<Error>(HasSubstr("of the minibatch is 0.5; expected 0 or 1")));
  // In a branch the rows of the branch alone.
  const Layer chosen = data("chosen", {}), p = data("p", {2}), y = data("y", {2});
  const Layer branched =
      cond(
          chosen,
          [&](Branch& branch) {
            return Layers{host_.layer("masked_fill", {branch.input(p), branch.input(y)}, {}, "inside")};
          },
          [&](Branch& branch) { return Layers{branch.input(p)}; })
          .results[0];
  const Machine of_branch = machine({branched});
  const Floats values = {1, 1, 1, 1}, mask = {1, 0, 7, 7};
  Floats choice = {1, 0};
  const auto forward = [&] {
    of_branch.forward({{"chosen", {TN_F32, {2}, choice.data()}},
                       {"p", {TN_F32, {2, 2}, values.data()}},
                       {"y", {TN_F32, {2, 2}, mask.data()}}});
  };
  EXPECT_NO_THROW(forward());
  choice = {1, 1};
  EXPECT_THAT(forward, testing::ThrowsMessage<Error>(HasSubstr("is 7; expected 0 or 1")));
}

// A refused forward changes nothing, and the next one works.
TEST_F(NumberChecks, AMachineGoesOnAfterARefusal) {
  const Layer x = data("x", {2}), y = data("y", {1});
  const Layer cost =
      host_.layer("binary_cross_entropy", {host_.layer("fc", {x}, {{"size", 1}}), y}, {{"from_logits", true}}, "cost");
  for (const tn_dtype compute : {TN_F32, TN_F64}) {
    MachineOptions options;
    options.max_samples = 4, options.training = true, options.compute = compute;
    const Machine machine = host_.machine(host_.parameters({cost}, 1), {cost}, options);
    const Floats values = {1, 2, 3, 4}, right = {0, 1}, wrong = {1, -1};
    const auto forward = [&](const Floats& labels) {
      machine.forward({{"x", {TN_F32, {2, 2}, values.data()}}, {"y", {TN_F32, {2, 1}, labels.data()}}});
    };
    forward(right);
    const double before = machine.cost();
    EXPECT_THAT([&] { forward(wrong); }, testing::ThrowsMessage<Error>(HasSubstr("sample 1 of the minibatch is -1")));
    EXPECT_THROW(machine.backward(), Error);
    forward(right);
    EXPECT_EQ(machine.cost(), before);
    machine.backward();
  }
}

}  // namespace
}  // namespace tenon_tests
