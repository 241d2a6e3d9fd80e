// Costs other than cross_entropy: regression, binary labels, assertions (true, false, less than, with its metric), and
// distributions. A layer has a gradient of its own where the derived one would be wrong at a kink, or longer.
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <tenon/plugin.hpp>

#include "values.h"

namespace tenon::costs {

namespace {

// ---- regression

struct SquareError : CostOfValues<2> {
  static void describe(tn::LayerDescription& d) {
    d.type("square_error",
           "Squared error, one cost for each sample: sum_k (input_k - label_k)^2 over its values, without a factor "
           "1/2 (Legendre, \"Nouvelles methodes pour la determination des orbites des cometes\", 1805). "
           "Differentiable in both inputs. Other names: mse, mse_loss.");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, ...]: the prediction");
    d.input("label", "the shape of the input: what is right");
    describe_rest(d);
  }
  static void lower(const Attributes&, tn::Builder& body) {
    tn::Program cost;
    const Float input = cost.full();
    const Float error = input - cost.full();
    record(body, cost, error * error);
  }
};

struct Huber : CostOfValues<2> {
  static void describe(tn::LayerDescription& d) {
    d.type("huber",
           "Huber's cost, one for each sample: the sum over its values of e^2 / 2 where |e| <= delta, else of delta "
           "(|e| - delta / 2), with e = input - label (Huber, \"Robust estimation of a location parameter\", 1964). "
           "The derivative is e, cut to [-delta, delta]. Differentiable in both inputs.");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, ...]: the prediction");
    d.input("label", "the shape of the input: what is right");
    describe_rest(d);
    d.attribute(tn::float_attribute("delta", 1).at_least(1e-6).doc("error from which on the cost grows linearly"));
  }
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const double delta = attributes.number("delta");
    tn::Program cost;
    const Float input = cost.full();
    const Float error = abs(input - cost.full());
    const Float near = min(error, delta);
    record(body, cost, near * (error - 0.5 * near), [delta](GradientProgram& backward) {
      const Float slope = max(min(backward.input(0) - backward.input(1), delta), -delta);
      const Float gradient = backward.result_gradient() * slope;
      backward.output(gradient);
      backward.output(-gradient);
    });
  }
};

// ---- binary labels

struct Hinge : CostOfValues<2> {
  static void describe(tn::LayerDescription& d) {
    d.type("hinge",
           "Hinge cost of a score and a label 0 or 1, one for each sample: the sum over its values of max(0, margin - "
           "s * input), where s = 1 for label 1 and -1 for label 0 (Cortes and Vapnik, \"Support-vector networks\", "
           "1995). The derivative at the kink is 0.");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, ...]: scores, positive for label 1");
    d.input("label", "the shape of the input: 0 or 1", TN_PORT_INTEGER);
    describe_rest(d);
    d.attribute(tn::float_attribute("margin", 1).at_least(0).doc("score from which on a right sample costs nothing"));
  }
  static void plan(tn::Planner& planner) {
    CostOfValues<2>::plan(planner);
    planner.index_limit(1, 2);
  }
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const double margin = attributes.number("margin");
    const auto lack = [margin](const Float& input, const tn::Int& label) {
      return margin - select(label > 0, input, -input);
    };
    tn::Program cost;
    const Float input = cost.full();
    record(body, cost, max(lack(input, cost.full<tn::Int>()), 0), [&](GradientProgram& backward) {
      const tn::Int label = backward.input<tn::Int>(1);
      const Float dy = backward.result_gradient();
      backward.output(select(lack(backward.input(0), label) > 0, select(label > 0, -dy, dy), 0.0));
      backward.output(backward.constant(0));
    });
  }
};

// -log(sigmoid(x)) for kTruth, -log(1 - sigmoid(x)) else: softplus(-x) and softplus(x).
template <bool kTruth>
struct ShouldBe : CostOfValues<1> {
  static void describe(tn::LayerDescription& d) {
    if (kTruth)
      d.type("should_be_true",
             "Cost of asserting that the input, a score before a sigmoid, means true: the sum over the values of a "
             "sample of -log(sigmoid(input)), computed as max(-input, 0) + log(1 + exp(-|input|)); the derivative is "
             "-1 / (1 + exp(input)). It is sigmoid cross-entropy toward 1 (Goodfellow et al., \"Generative "
             "adversarial nets\", 2014, equation 1, first term).");
    else
      d.type("should_be_false",
             "Cost of asserting that the input, a score before a sigmoid, means false: the sum over the values of a "
             "sample of -log(1 - sigmoid(input)), computed as max(input, 0) + log(1 + exp(-|input|)); the derivative "
             "is 1 / (1 + exp(-input)). It is sigmoid cross-entropy toward 0 (Goodfellow et al., \"Generative "
             "adversarial nets\", 2014, equation 1, second term).");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, ...]: scores, positive for true");
    describe_rest(d);
  }
  static void lower(const Attributes&, tn::Builder& body) {
    tn::Program cost;
    const Float value = softplus(wrong(cost.full()));
    record(body, cost, value, [](GradientProgram& backward) {  // 1/2 at 0, where the derived gradient is one-sided
      backward.output(wrong(backward.result_gradient()) * softplus_slope(wrong(backward.input())));
    });
  }

 private:
  static Float wrong(const Float& input) { return kTruth ? -input : input; }
};

// ---- any value

struct SumCost : CostOfValues<1> {
  static void describe(tn::LayerDescription& d) {
    d.type("sum_cost",
           "Makes a cost of any value: the cost of a sample is the sum over its values. With the attribute coefficient "
           "it weighs a term of one's own, such as a penalty, against other costs.");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, ...]: what should become small");
    describe_rest(d);
  }
  static void lower(const Attributes&, tn::Builder& body) {
    tn::Program cost;
    record(body, cost, cost.full());
  }
};

// ---- order

struct LessThan : CostOfValues<2> {
  static void describe(tn::LayerDescription& d) {
    d.type("less_than",
           "Cost of asserting a < b, one for each sample, summed over its values. form = \"softplus\": log(1 + exp((a "
           "- b) / temperature)), the logistic cost of a pair (Burges et al., \"Learning to rank using gradient "
           "descent\", 2005); form = \"hinge\": max(0, a - b + margin) (Herbrich, Graepel and Obermayer, \"Large "
           "margin rank boundaries for ordinal regression\", 2000), with derivative 0 at the kink. Differentiable in "
           "both. The metric less_than_share tells how often it holds.");
    d.role(TN_ROLE_COST);
    d.input("a", "[samples, ...]: what should be less; the cost of a layer, for example");
    d.input("b", "the shape of a: what should be greater");
    describe_rest(d);
    d.attribute(tn::string_attribute("form", "softplus").one_of({"softplus", "hinge"}).doc("which of the two costs"));
    d.attribute(tn::float_attribute("temperature").at_least(1e-6).doc("of softplus: unit of a - b; 1 when absent"));
    d.attribute(tn::float_attribute("margin").at_least(0).doc(
        "of hinge: how much less a must be to cost nothing; 1 when absent"));
  }
  static bool is_hinge(const Attributes& attributes) { return attributes.text("form") == std::string("hinge"); }

  static void plan(tn::Planner& planner) {
    const bool hinge = is_hinge(planner.attributes());
    const char* other = hinge ? "temperature" : "margin";
    if (planner.attributes().has(other))
      throw tn::Failure(TN_INVALID, other, hinge ? "form \"hinge\" has none" : "form \"softplus\" has none");
    CostOfValues<2>::plan(planner);
  }
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const bool hinge = is_hinge(attributes);
    const char* name = hinge ? "margin" : "temperature";
    const double number = attributes.has(name) ? attributes.number(name) : 1;
    const auto excess = [&](const Float& a, const Float& b) { return hinge ? a - b + number : (a - b) / number; };
    tn::Program cost;
    const Float a = cost.full();
    const Float z = excess(a, cost.full());
    record(body, cost, hinge ? max(z, 0) : softplus(z), [&](GradientProgram& backward) {
      const Float at = excess(backward.input(0), backward.input(1));
      const Float dy = backward.result_gradient();
      const Float gradient = hinge ? select(at > 0, dy, 0.0) : dy / number * softplus_slope(at);
      backward.output(gradient);
      backward.output(-gradient);
    });
  }
};

struct RankCost : tn::DeclaresNumbers<RankCost> {
  enum { kLeft = 0, kRight = 1, kLabel = 2, kWeight = 3 };

  static void describe(tn::LayerDescription& d) {
    d.type("rank_cost",
           "Cost of the order of a pair with scores left and right, one for each sample, summed over its values: with "
           "o = left - right and t the probability that left comes first, log(1 + exp(o)) - t o, times the weight "
           "where there is one (RankNet: Burges et al., \"Learning to rank using gradient descent\", 2005, equation "
           "3). Differentiable in all inputs.");
    d.role(TN_ROLE_COST);
    d.input("left", "[samples, ...]: scores");
    d.input("right", "the shape of left: scores");
    d.input("label", "the shape of left: probability that left comes first; 1 or 0 where that is known, 1/2 for a tie");
    d.input("weight", "the shape of left: factor of the cost", TN_PORT_OPTIONAL);
    d.output("output", "[samples]: the cost of each");
  }
  static void plan(tn::Planner& planner) {
    plan_values(planner, kWeight + 1);
    planner.output(0, tn::Spec({planner.input(kLeft)[0]}));
  }
  static void numbers(tn::NumberDeclarer& declarer) {
    declarer.input(kLabel, tn::Numbers::probabilities().unless_weightless(kWeight));
  }
  static void lower(const Attributes&, tn::Builder& body) {
    const bool weighted = body.optional_input(kWeight).has_value();
    tn::Program cost;
    const Float left = cost.full(), right = cost.full(), t = cost.full();
    const Float o = left - right;
    const Float value = softplus(o) - t * o;
    cost.output(sum_per_row(weighted ? value * cost.full() : value));

    GradientProgram backward(cost);
    const Float at = backward.input(kLeft) - backward.input(kRight);
    const Float dy = backward.result_gradient();
    const Float share = weighted ? dy * backward.input(kWeight) : dy;
    const Float gradient = share * (softplus_slope(at) - backward.input(kLabel));
    backward.output(gradient);
    backward.output(-gradient);
    backward.output(-(share * at));
    if (weighted) backward.output(dy * (softplus(at) - backward.input(kLabel) * at));
    body.output(0, body.pointwise(cost, values_of(body, weighted ? 4 : 3), 1, &backward).front());
  }
};

// The metric beside less_than.
struct LessThanShare {
  enum { kHolds = 0, kCount = 1 };  // state

  static void describe(tn::LayerDescription& d) {
    d.type("less_than_share",
           "The share of samples for which a < b holds, for all of their values; a value that is not a number is not "
           "less. Without samples the share is 0.");
    d.role(TN_ROLE_METRIC);
    d.input("a", "[samples, ...]: what should be less");
    d.input("b", "the shape of a: what should be greater");
  }
  static void plan(tn::Planner& planner) {
    plan_values(planner, 2);
    planner.state(2);
  }
  static void lower(const Attributes&, tn::Builder& body) {
    tn::Program program;
    const Float a = program.full();
    const Float wrong = sum_per_row(to_float(!(a < program.full())));
    program.output(sum_all(to_float(wrong <= 0)));
    program.output(sum_all(to_float(program.row() >= 0)));  // 1 for each sample
    const std::vector<tn::Tensor> state = body.pointwise(program, values_of(body, 2));
    body.state(kHolds, state[kHolds]);
    body.state(kCount, state[kCount]);
  }
  static void finalize(const Attributes&, const double* state, tn::Results& results) {
    results.add("less_than_share", state[kCount] > 0 ? state[kHolds] / state[kCount] : 0);
  }
};

// ---- distributions

struct KlDivergence : tn::DeclaresNumbers<KlDivergence> {
  static void describe(tn::LayerDescription& d) {
    d.type("kl_divergence",
           "Kullback-Leibler divergence of a prediction q from a distribution p, one cost for each sample: sum_k p_k "
           "(log(p_k) - log(q_k)), where logarithms are of no less than 1e-30, so that p_k = 0 adds nothing "
           "(Kullback and Leibler, \"On information and sufficiency\", 1951). With from_logits the input is x before "
           "the softmax and log(q_k) = x_k - m - log(sum_j exp(x_j - m)), where m is the largest x_j, without over- "
           "or underflow. Differentiable in both inputs.");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, classes]: q, or with from_logits any numbers");
    d.input("label", "[samples, classes]: p");
    d.input("weight", kRowWeightDoc, TN_PORT_OPTIONAL);
    d.output("output", "[samples]: the cost of each");
    d.attribute(tn::bool_attribute("from_logits", false).doc("the input has not been through a softmax"));
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input_of_rank(0, 2, "[samples, classes]");
    planner.elements(0, 1);
    planner.require_shape(1, input);
    if (planner.has_input(2)) planner.require_per_row(2, input.leading(1));
    planner.output(0, tn::Spec({input[0]}));
  }
  static void numbers(tn::NumberDeclarer& declarer) {
    const tn::Numbers shares = tn::Numbers::probabilities().unless_weightless(2);
    if (!declarer.attributes().flag("from_logits"))
      declarer.input(0, shares.advice("for numbers before a softmax set from_logits = true"));
    declarer.input(1, shares);
  }
  static void lower(const Attributes& attributes, tn::Builder& body) {
    tn::Program cost;
    const Float input = cost.full();
    const Float p = cost.full();
    const Float log_p = log(max(p, kLeastProbability));
    if (attributes.flag("from_logits")) {
      const Float shifted = input - stop(max_per_row(input));
      cost.output(sum_per_row(p * (log_p - shifted + log(sum_per_row(exp(shifted))))));
    } else {
      cost.output(sum_per_row(p * (log_p - log(max(input, kLeastProbability)))));
    }
    body.output(0, costs_of_rows(body, cost, values_of(body, 2), 1, body.optional_input(2)));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.costs", "0.1.0", "Costs of regression, binary labels, order and distributions", "Apache-2.0");
  plugin.layer<SquareError>();
  plugin.layer<Huber>();
  plugin.layer<Hinge>();
  plugin.layer<ShouldBe<true>>();
  plugin.layer<ShouldBe<false>>();
  plugin.layer<SumCost>();
  plugin.layer<LessThan>();
  plugin.layer<RankCost>();
  plugin.layer<LessThanShare>();
  plugin.layer<KlDivergence>();
  add_losses(plugin);
  add_embeddings(plugin);
}

}  // namespace

}  // namespace tenon::costs

const tn_plugin* tenon_plugin() { return tn::entry<tenon::costs::describe>(); }
