// Further costs: absolute errors, binary labels with weights, likelihoods, embeddings, overlap of masks.
// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <vector>

#include "values.h"

namespace tenon::costs {

namespace {

// The ports of a prediction and what is right.
void describe_pair(tn::LayerDescription& d, const char* input, const char* label) {
  d.role(TN_ROLE_COST);
  d.input("input", input);
  d.input("label", label);
  CostOfValues<2>::describe_rest(d);
}

// ---- regression

struct AbsoluteError : CostOfValues<2> {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "absolute_error",
        "Absolute error, one cost for each sample: sum_k |input_k - label_k| over its values; the derivative at 0 is "
        "0. Differentiable in both inputs.");
    describe_pair(d, "[samples, ...]: the prediction", "the shape of the input: what is right");
  }
  static void lower(const Attributes&, tn::Builder& body) {
    tn::Program cost;
    const Float input = cost.full();
    record(body, cost, abs(input - cost.full()), [](GradientProgram& backward) {
      const Float gradient = backward.result_gradient() * sign(backward.input(0) - backward.input(1));
      backward.output(gradient);
      backward.output(-gradient);
    });
  }
};

struct SmoothL1 : CostOfValues<2> {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "smooth_l1",
        "One cost for each sample: the sum over its values of e^2 / (2 beta) where |e| < beta, else of |e| - beta / "
        "2, with e = input - label (Girshick, \"Fast R-CNN\", 2015). It is huber with delta = beta, divided by beta. "
        "Differentiable in both inputs.");
    describe_pair(d, "[samples, ...]: the prediction", "the shape of the input: what is right");
    d.attribute(tn::float_attribute("beta", 1).at_least(1e-6).doc("error from which on the cost grows linearly"));
  }
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const double beta = attributes.number("beta");
    tn::Program cost;
    const Float input = cost.full();
    const Float error = abs(input - cost.full()) * (1 / beta);
    const Float near = min(error, 1);
    record(body, cost, beta * (near * (error - 0.5 * near)), [beta](GradientProgram& backward) {
      const Float slope = max(min((backward.input(0) - backward.input(1)) * (1 / beta), 1), -1);
      const Float gradient = backward.result_gradient() * slope;
      backward.output(gradient);
      backward.output(-gradient);
    });
  }
};

// ---- likelihoods

struct PoissonNll : CostOfValues<2>, tn::DeclaresNumbers<PoissonNll> {
  static void describe(tn::LayerDescription& d) {
    d.type("poisson_nll",
           "Negative log-likelihood of counts under Poisson distributions, one for each sample, without the term "
           "log(label!) that does not depend on the input: the sum over its values of exp(input) - label input for the "
           "logarithm of the mean, or with log_input = false of input - label log(max(input, 1e-30)).");
    describe_pair(d, "[samples, ...]: the logarithm of the mean; with log_input = false the mean, above 0",
                  "the shape of the input: the count");
    d.attribute(tn::bool_attribute("log_input", true).doc("the input is the logarithm of the mean"));
  }
  static void numbers(tn::NumberDeclarer& declarer) {
    const tn::Numbers counts = tn::Numbers::at_least(0).unless_weightless(kWeight);
    if (!declarer.attributes().flag("log_input"))
      declarer.input(0, counts.advice("for the logarithm of the mean set log_input = true"));
    declarer.input(1, counts);
  }
  static void lower(const Attributes& attributes, tn::Builder& body) {
    tn::Program cost;
    const Float input = cost.full();
    const Float label = cost.full();
    record(
        body, cost,
        attributes.flag("log_input") ? exp(input) - label * input : input - label * log(max(input, kLeastProbability)));
  }
};

struct GaussianNll : CostOfValues<3>, tn::DeclaresNumbers<GaussianNll> {
  static void describe(tn::LayerDescription& d) {
    d.type("gaussian_nll",
           "Negative log-likelihood of numbers under normal distributions, one for each sample, without the constant "
           "log(2 pi) / 2: the sum over its values of (log(v) + (input - label)^2 / v) / 2 with v = max(variance, "
           "epsilon); below epsilon the derivative by the variance is 0 (Nix and Weigend, \"Estimating the mean and "
           "variance of the target probability distribution\", 1994). Differentiable in all inputs.");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, ...]: the mean");
    d.input("label", "the shape of the input: what is right");
    d.input("variance", "the shape of the input: above 0");
    describe_rest(d);
    d.attribute(tn::float_attribute("epsilon", 1e-6).at_least(1e-30).doc("the least variance"));
  }
  static void numbers(tn::NumberDeclarer& declarer) {
    declarer.input(2, tn::Numbers::at_least(0).unless_weightless(kWeight));
  }
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const double epsilon = attributes.number("epsilon");
    tn::Program cost;
    const Float input = cost.full();
    const Float error = input - cost.full();
    const Float variance = max(cost.full(), epsilon);
    record(body, cost, 0.5 * (log(variance) + error * error / variance));
  }
};

// ---- binary labels

struct BinaryCrossEntropy : CostOfValues<2>, tn::DeclaresNumbers<BinaryCrossEntropy> {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "binary_cross_entropy",
        "Cross-entropy of yes or no, for any number of questions at once, one cost for each sample: the sum over its "
        "values of -(positive_weight y log(p) + (1 - y) log(1 - p)) for probabilities p, where logarithms are of no "
        "less than 1e-30. With from_logits the input is x before the sigmoid, and the cost is (1 - y) x + (1 + "
        "(positive_weight - 1) y) log(1 + exp(-x)), computed without overflow. Each value counts with its weight; "
        "one whose label is ignore_index does not count. Differentiable in all inputs.");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, ...]: probabilities, or with from_logits any numbers");
    d.input("label", "the shape of the input: 1, 0, or a probability between them");
    describe_rest(d);
    d.attribute(tn::bool_attribute("from_logits", false).doc("the input has not been through a sigmoid"));
    d.attribute(tn::float_attribute("positive_weight", 1).at_least(0).doc("weight of labels 1 against labels 0"));
    d.attribute(tn::int_attribute("ignore_index").doc("a label that does not count, such as -1"));
  }
  static void numbers(tn::NumberDeclarer& declarer) {
    const Attributes attributes = declarer.attributes();
    tn::Numbers shares = tn::Numbers::probabilities().unless_weightless(kWeight);
    if (attributes.has("ignore_index"))
      shares = shares.unless_ignored(1, static_cast<double>(attributes.integer("ignore_index")));
    declarer.input(1, attributes.has("ignore_index")
                          ? shares.exempt(static_cast<double>(attributes.integer("ignore_index")))
                          : shares);
    if (!attributes.flag("from_logits"))
      declarer.input(0, shares.advice("for numbers before a sigmoid set from_logits = true"));
  }
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const double positive = attributes.number("positive_weight");
    tn::Program cost;
    const Float x = cost.full();
    const Float y = cost.full();
    record(body, cost, attributes.flag("from_logits") ? of_logits(x, y, positive) : of_probabilities(x, y, positive),
           nullptr,
           attributes.has("ignore_index") ? counted(body, attributes.integer("ignore_index"))
                                          : body.optional_input(kWeight));
  }

 private:
  // The weight of each value, 0 where the label is `ignored`.
  static tn::Tensor counted(tn::Builder& body, int64_t ignored) {
    std::vector<tn::Tensor> operands{values_of(body, 2)[1]};
    tn::Program program;
    const Float label = program.full();
    const std::optional<tn::Tensor> weight = body.optional_input(kWeight);
    std::optional<Weights> weights;
    if (weight) operands.push_back(weights.emplace(*weight, operands[0].spec(), 1).value());
    program.output(select(label == ignored, 0.0, weights ? weights->input_of(program) : program.constant(1)));
    return body.pointwise(program, operands, 1).front();
  }
  static Float of_probabilities(const Float& p, const Float& y, double positive) {
    const Float yes = log(max(p, kLeastProbability)), no = log(max(1 - p, kLeastProbability));
    return -(positive * (y * yes) + (1 - y) * no);
  }
  // (|x| - x) / 2 is max(-x, 0) with the derivative -1/2 at 0, so that the derived gradient is right there.
  static Float of_logits(const Float& x, const Float& y, double positive) {
    const Float none = log1p(exp(-abs(x))) + 0.5 * (abs(x) - x);
    return (1 - y) * x + (positive == 1 ? none : (1 + (positive - 1) * y) * none);
  }
};

struct Focal : CostOfValues<2> {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "focal",
        "Cross-entropy of yes or no that counts certain answers less, one cost for each sample: the sum over its "
        "values of -a (1 - p)^gamma log(p), where p is the probability of the right answer, sigmoid(input) for label "
        "1 and sigmoid(-input) for label 0, and a is alpha for label 1, 1 - alpha for label 0 (Lin et al., \"Focal "
        "loss for dense object detection\", 2017).");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, ...]: scores before a sigmoid");
    d.input("label", "the shape of the input: 0 or 1", TN_PORT_INTEGER);
    describe_rest(d);
    d.attribute(tn::float_attribute("gamma", 2).at_least(0).doc("0: cross-entropy with weights"));
    d.attribute(tn::float_attribute("alpha", 0.25).at_least(0).at_most(1).doc("weight of label 1"));
  }
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const double gamma = attributes.number("gamma"), alpha = attributes.number("alpha");
    tn::Program cost;
    const Float x = cost.full();
    const tn::Int y = cost.full<tn::Int>();
    const Float towards = select(y > 0, x, -x);
    // log(p) = -softplus(-z), log(1 - p) = -softplus(z) for the score z of the right answer.
    const Float value = select(y > 0, alpha, 1 - alpha) * (exp(-gamma * softplus(towards)) * softplus(-towards));

    // With q = 1 - p: d/dz = a q^gamma (gamma p log(p) - q).
    record(body, cost, value, [gamma, alpha](GradientProgram& backward) {
      const tn::Int right = backward.input<tn::Int>(1);
      const Float z = select(right > 0, backward.input(0), -backward.input(0));
      const Float less = exp(-gamma * softplus(z));
      const Float slope = less * (-(gamma * softplus_slope(z) * softplus(-z)) - softplus_slope(-z));
      const Float weighted = backward.result_gradient() * select(right > 0, alpha, 1 - alpha) * slope;
      backward.output(select(right > 0, weighted, -weighted));
      backward.output(backward.constant(0));
    });
  }
  static void plan(tn::Planner& planner) {
    CostOfValues<2>::plan(planner);
    planner.index_limit(1, 2);
  }
};

// ---- overlap

struct Dice : tn::DeclaresNumbers<Dice> {
  static void describe(tn::LayerDescription& d) {
    d.type("dice",
           "1 minus the overlap of a predicted and a given mask, one cost for each sample: 1 - (2 sum_k p_k y_k + "
           "smooth) / (sum_k p_k^2 + sum_k y_k^2 + smooth) over its values (Milletari, Navab and Ahmadi, \"V-Net\", "
           "2016, equation 1). Differentiable in both inputs.");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, ...]: probabilities");
    d.input("label", "the shape of the input: 1, 0, or a probability between them");
    d.input("weight", kRowWeightDoc, TN_PORT_OPTIONAL);
    d.output("output", "[samples]: the cost of each");
    d.attribute(tn::float_attribute("smooth", 1).at_least(1e-6).doc("keeps the cost finite for two empty masks"));
  }
  static void plan(tn::Planner& planner) {
    plan_values(planner, 2);
    if (planner.has_input(2)) planner.require_per_row(2, planner.input(0).leading(1));
    planner.output(0, tn::Spec({planner.input(0)[0]}));
  }
  static void numbers(tn::NumberDeclarer& declarer) {
    const tn::Numbers shares = tn::Numbers::probabilities().unless_weightless(2);
    declarer.input(0, shares.advice("the layer sigmoid makes probabilities of other numbers"));
    declarer.input(1, shares);
  }
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const double smooth = attributes.number("smooth");
    tn::Program cost;
    const Float p = cost.full();
    const Float y = cost.full();
    cost.output(1 - (2 * sum_per_row(p * y) + smooth) / (sum_per_row(p * p) + sum_per_row(y * y) + smooth));
    body.output(0, costs_of_rows(body, cost, values_of(body, 2), 1, body.optional_input(2)));
  }
};

}  // namespace

void add_losses(tn::Plugin& plugin) {
  plugin.layer<AbsoluteError>();
  plugin.layer<SmoothL1>();
  plugin.layer<PoissonNll>();
  plugin.layer<GaussianNll>();
  plugin.layer<BinaryCrossEntropy>();
  plugin.layer<Focal>();
  plugin.layer<Dice>();
}

}  // namespace tenon::costs
