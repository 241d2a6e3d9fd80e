// Metrics of decisions between true and false that are one number, and how far probabilities are from frequencies.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "metrics.h"

namespace tenon::metrics {

namespace {

using tn::Attributes;
using tn::Float;
using tn::Int;
using tn::Logical;

// Samples by what they are called and what they are.
struct Decisions {
  double right = 0, named = 0, real = 0, samples = 0;  // right: called true, and true
};

// A metric whose Formula is a function of the decisions.
template <typename Formula>
struct Binary : tn::DeclaresNumbers<Binary<Formula>> {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    describe_binary(d);
    Threshold::describe(d);
    Formula::attributes(d);
  }

  static void plan(tn::Planner& planner) {
    plan_binary(planner);
    planner.state(4);
  }
  static void numbers(tn::NumberDeclarer& declarer) { Threshold::numbers(declarer); }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    tn::Program program;
    const Logical named = program.per_row() > attributes.number("threshold");
    const Int label = program.per_row<Int>();
    program.output(count(named && label == 1), TN_F64);
    program.output(count(named), TN_F64);
    program.output(count(label == 1), TN_F64);
    program.output(count_rows(label), TN_F64);
    put_state(body, body.pointwise(program, {body.input(0), body.input(1)}));
  }

  static void finalize(const Attributes& attributes, const double* state, tn::Results& results) {
    results.add(Formula::kType, Formula::value(attributes, {state[0], state[1], state[2], state[3]}));
  }
};

struct BinaryAccuracy {
  static constexpr const char* kType = "binary_accuracy";
  static constexpr const char* kDoc =
      "The share of samples that are called what they are: true where the score is above threshold. Without samples it "
      "is 0.";
  static void attributes(tn::LayerDescription& /*d*/) {}
  static double value(const Attributes& /*attributes*/, const Decisions& n) {
    return ratio(n.samples - n.named - n.real + 2 * n.right, n.samples);
  }
};

struct FBeta {
  static constexpr const char* kType = "f_beta";
  static constexpr const char* kDoc =
      "(1 + beta^2) precision recall / (beta^2 precision + recall), which weighs recall beta times as much as "
      "precision (van Rijsbergen, \"Information retrieval\", 1979); both are those of precision_recall. 0 where "
      "nothing is to be "
      "divided by.";
  static void attributes(tn::LayerDescription& d) {
    d.attribute(tn::float_attribute("beta", 1).at_least(0).doc("how much more recall counts than precision"));
  }
  static double value(const Attributes& attributes, const Decisions& n) {
    const double square = attributes.number("beta") * attributes.number("beta");
    return ratio((1 + square) * n.right, square * n.real + n.named);
  }
};

struct Matthews {
  static constexpr const char* kType = "matthews_correlation";
  static constexpr const char* kDoc =
      "The correlation of what samples are called and what they are, from -1 to 1 (Matthews, \"Comparison of the "
      "predicted and observed secondary structure of T4 phage lysozyme\", 1975). 0 where all are called the same, or "
      "are.";
  static void attributes(tn::LayerDescription& /*d*/) {}
  static double value(const Attributes& /*attributes*/, const Decisions& n) {
    const double spread = n.named * n.real * (n.samples - n.named) * (n.samples - n.real);
    return spread > 0 ? (n.samples * n.right - n.named * n.real) / std::sqrt(spread) : 0;
  }
};

struct CalibrationError : tn::DeclaresNumbers<CalibrationError> {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "calibration_error",
        "How far probabilities are from frequencies: samples are counted in bins of equal width by their confidence, "
        "and the error is the mean over the samples of |confidence - share of right ones| of their bin, both means "
        "of the bin (Guo et al., \"On calibration of modern neural networks\", 2017, equation 3). The confidence is "
        "the score of \"true\", for which right is a true label; of several classes the largest score, for which "
        "right is that class, of equal ones the first. max_calibration_error is that of the worst bin. Without "
        "samples they are 0.");
    d.role(TN_ROLE_METRIC);
    d.input("input", "[samples] or [samples, 1]: the probability of \"true\"; or [samples, classes]: probabilities");
    d.input("label", "[samples]: 1 for true, 0 for false; or the number of the right class", TN_PORT_INTEGER);
    d.attribute(tn::int_attribute("bins", 15).at_least(1).at_most(1000).doc("number of bins"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() < 1 || input.rank() > 2) throw planner.bad_input(0, "must be [samples] or [samples, classes]");
    const int64_t classes = input.rank() == 2 ? planner.elements(0, 1) : 1;
    planner.require_per_row(1, input.leading(1));
    planner.index_limit(1, classes == 1 ? 2 : classes);
    planner.state(static_cast<uint32_t>(3 * planner.attributes().integer("bins")));
  }
  static void numbers(tn::NumberDeclarer& declarer) {
    declarer.input(0, tn::Numbers::probabilities().advice("apply a softmax or sigmoid before"));
  }

  // scores [samples, classes], labels [samples] -> by bin samples, sum of confidences, right ones.
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const int64_t bins = attributes.integer("bins");
    const tn::Spec spec = body.input(0).spec();
    const bool one = spec.rank() == 1 || spec[1].same(1);
    tn::Program program;
    const Float score = one ? program.per_row() : program.full();
    const Int label = program.per_row<Int>();
    const Float confidence = one ? score : max_per_row(score);
    const Int called =
        one ? label - label + 1 : min_per_row(select(score == confidence, program.column(), spec[1].offset));
    const Float right = to_float(label == called);
    program.output(to_int(min(confidence * static_cast<double>(bins), static_cast<double>(bins - 1))), TN_I32);
    program.output(to_float(label >= 0));
    program.output(confidence);
    program.output(right);
    const std::vector<tn::Tensor> rows = body.pointwise(program, {body.input(0), body.input(1)}, 1);
    for (int64_t k = 0; k < 3; ++k)
      put_histogram(body, body.scatter_add(rows[static_cast<size_t>(k + 1)], rows[0], bins), bins, k * bins);
  }

  static void finalize(const Attributes& attributes, const double* state, tn::Results& results) {
    const int64_t bins = attributes.integer("bins");
    double samples = 0, sum = 0, worst = 0;
    for (int64_t k = 0; k < bins; ++k) {
      const double apart = std::abs(state[bins + k] - state[2 * bins + k]);
      samples += state[k];
      sum += apart;
      worst = std::fmax(worst, ratio(apart, state[k]));
    }
    results.add("calibration_error", ratio(sum, samples));
    results.add("max_calibration_error", worst);
  }
};

}  // namespace

void add_binary(tn::Plugin& plugin) {
  plugin.layer<Binary<BinaryAccuracy>>();
  plugin.layer<Binary<FBeta>>();
  plugin.layer<Binary<Matthews>>();
  plugin.layer<CalibrationError>();
}

}  // namespace tenon::metrics
