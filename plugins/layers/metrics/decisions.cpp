// Metrics of decisions between true and false.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include "metrics.h"

namespace tenon::metrics {

namespace {

using tn::Attributes;
using tn::Float;
using tn::Int;
using tn::Logical;

// Bins of equal width between low and high, in which scores are counted.
struct Bins {
  static void describe(tn::LayerDescription& d, int64_t usual) {
    d.attribute(tn::int_attribute("bins", usual).at_least(2).at_most(1000).doc("number of bins"));
    d.attribute(tn::float_attribute("low", 0).doc("scores below it count in the first bin"));
    d.attribute(tn::float_attribute("high", 1).doc("scores above it count in the last bin; above low"));
    d.attribute(tn::bool_attribute("from_logits", false)
                    .doc("the scores have not been through a sigmoid, which is applied before they are counted"));
  }

  static void check(const Attributes& attributes) {
    if (!(attributes.number("high") > attributes.number("low")))
      throw tn::Failure(TN_INVALID, "high", "must be above low");
  }

  // Scores outside of bounds that the user chose count in the first and the last bin; else they are no probabilities.
  static void numbers(tn::NumberDeclarer& declarer) {
    const Attributes attributes = declarer.attributes();
    if (attributes.flag("from_logits") || attributes.number("low") != 0 || attributes.number("high") != 1) return;
    declarer.input(0, tn::Numbers::probabilities().advice(
                          "for scores before a sigmoid set from_logits = true, for others low and high"));
  }

  explicit Bins(const Attributes& attributes)
      : count(attributes.integer("bins")),
        low(attributes.number("low")),
        high(attributes.number("high")),
        from_logits(attributes.flag("from_logits")) {}

  // The bin of a score, from 0; NaN is in the first.
  [[nodiscard]] Int of(const Float& input) const {
    const Float score = from_logits ? 1 / (1 + exp(-input)) : input;
    const double scale = static_cast<double>(count) / (high - low);
    return to_int(min(max((select(score == score, score, low) - low) * scale, 0), static_cast<double>(count - 1)));
  }

  int64_t count;
  double low, high;
  bool from_logits;
};

struct PrecisionRecall : tn::DeclaresNumbers<PrecisionRecall> {
  static void describe(tn::LayerDescription& d) {
    d.type("precision_recall",
           "Of the samples called true (score above threshold), the share that is true: precision; of the true ones, "
           "the share that was called so: recall; and F1 = 2 precision recall / (precision + recall) (van Rijsbergen, "
           "\"Information retrieval\", 1979). Where nothing is to be divided by they are 0.");
    describe_binary(d);
    Threshold::describe(d);
  }

  static void plan(tn::Planner& planner) {
    plan_binary(planner);
    planner.state(3);
  }
  static void numbers(tn::NumberDeclarer& declarer) { Threshold::numbers(declarer); }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    tn::Program program;
    const Logical named = program.per_row() > attributes.number("threshold");
    const Logical real = program.per_row<Int>() == 1;
    program.output(count(named && real), TN_F64);
    program.output(count(named), TN_F64);
    program.output(count(real), TN_F64);
    put_state(body, body.pointwise(program, {body.input(0), body.input(1)}));
  }

  static void finalize(const Attributes&, const double* state, tn::Results& results) {
    add_quality(quality(state[0], state[1], state[2]), results);
  }
};

// ---- area under the receiver operating characteristic

struct Auc : tn::DeclaresNumbers<Auc> {
  static void describe(tn::LayerDescription& d) {
    d.type("auc",
           "Area under the receiver operating characteristic: the probability that a true sample scores above a false "
           "one, where equal scores count one half (Hanley and McNeil, \"The meaning and use of the area under a "
           "receiver operating characteristic (ROC) curve\", 1982). Counted in bins of equal width between low and "
           "high; scores outside of other bounds than 0 and 1 count in the first and the last, NaN in the first. Pairs "
           "within one bin count one half; "
           "auc_error bounds that error. Without a sample of each kind the area is 0.5.");
    describe_binary(d);
    Bins::describe(d, 200);
  }

  static void plan(tn::Planner& planner) {
    Bins::check(planner.attributes());
    plan_binary(planner);
    planner.state(static_cast<uint32_t>(2 * planner.attributes().integer("bins")));
  }
  static void numbers(tn::NumberDeclarer& declarer) { Bins::numbers(declarer); }

  // scores [samples], labels 0 or 1 [samples] -> histogram [2 * bins]: state 2k counts the false samples in bin k,
  // state 2k + 1 the true ones.
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const Bins bins(attributes);
    tn::Program program;
    const Float score = program.per_row();
    const Int slot = 2 * bins.of(score) + program.per_row<Int>();
    program.output(slot, TN_I32);
    program.output(to_float(slot >= 0));  // 1 for each sample
    const std::vector<tn::Tensor> made = body.pointwise(program, {body.input(0), body.input(1)});
    put_histogram(body, body.scatter_add(made[1], made[0], 2 * bins.count), 2 * bins.count);
  }

  static void finalize(const Attributes& attributes, const double* state, tn::Results& results) {
    double below = 0;  // false samples in smaller bins
    double real = 0, area = 0, together = 0;
    for (int64_t k = 0; k < attributes.integer("bins"); ++k) {
      const double wrong = state[2 * k];
      const double right = state[2 * k + 1];
      area += right * (below + wrong / 2);
      together += right * wrong / 2;
      below += wrong;
      real += right;
    }
    const double pairs = real * below;
    results.add("auc", pairs > 0 ? area / pairs : 0.5);
    results.add("auc_error", ratio(together, pairs));
  }
};

// ---- average precision

struct MeanAveragePrecision : tn::DeclaresNumbers<MeanAveragePrecision> {
  // Each bin of each class has two numbers in the state.
  static constexpr int64_t kMostStates = 4096;

  static void describe(tn::LayerDescription& d) {
    d.type(
        "mean_average_precision",
        "For each class, the samples in the order of their scores for it: the mean, over the true ones, of the share "
        "of true ones among the samples up to there (average precision: the area under precision by recall); the "
        "mean over the classes that have a true sample. Counted in bins of equal width between low and high, and "
        "samples of one bin have equal scores; scores outside of other bounds than 0 and 1 count in the first and the "
        "last, NaN in the first. "
        "Without a true sample it is 0.");
    d.role(TN_ROLE_METRIC);
    d.input("input", "[samples, classes]: for each class the score of \"true\"");
    d.input("label", "the shape of the input: 1 for true, 0 for false");
    Bins::describe(d, 100);
  }

  static void plan(tn::Planner& planner) {
    Bins::check(planner.attributes());
    planner.require_shape(1, planner.input_of_rank(0, 2, "[samples, classes]"));
    const int64_t bins = planner.attributes().integer("bins"), states = 2 * bins * planner.elements(0, 1);
    if (states > kMostStates)
      throw tn::Failure(TN_UNSUPPORTED, "bins",
                        "times the classes of the input is above " + std::to_string(kMostStates / 2))
          .actual(planner.input(0));
    planner.state(static_cast<uint32_t>(2 + states));
  }
  static void numbers(tn::NumberDeclarer& declarer) {
    Bins::numbers(declarer);
    declarer.input(1, tn::Numbers::zero_or_one());
  }

  // scores and labels [samples, classes] -> states 0 and 1, from which finalize derives the number of classes: samples,
  // samples * classes; then for each class and bin the false samples and the true ones.
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const tn::Spec shape = body.input(0).spec();
    const Bins bins(attributes);
    const int64_t classes = shape[1].offset;
    tn::Program program;
    const Float score = program.full();
    const Logical real = program.full() > 0.5;
    const Int place = 2 * (program.column() * bins.count + bins.of(score)) + to_int(to_float(real));
    program.output(place, TN_I32);
    program.output(to_float(place >= 0));  // 1 for each number
    const Float samples = count_rows(program.row());
    program.output(samples, TN_F64);
    program.output(samples * static_cast<double>(classes), TN_F64);
    const std::vector<tn::Tensor> made = body.pointwise(program, {body.input(0), body.input(1)});
    const tn::Spec flat({shape[0].times(classes)});
    const int64_t counts = 2 * bins.count * classes;
    put_state(body, {made[2], made[3]});
    put_histogram(body, body.scatter_add(made[1].view(flat), made[0].view(flat), counts), counts, 2);
  }

  static void finalize(const Attributes& attributes, const double* state, tn::Results& results) {
    const int64_t bins = attributes.integer("bins"), classes = std::llround(ratio(state[1], state[0]));
    double sum = 0, met = 0;
    for (int64_t k = 0; k < classes; ++k) {
      const double* counts = state + 2 + 2 * bins * k;
      double right = 0, all = 0, precisions = 0;
      for (int64_t bin = bins - 1; bin >= 0; --bin) {
        right += counts[2 * bin + 1];
        all += counts[2 * bin] + counts[2 * bin + 1];
        precisions += counts[2 * bin + 1] * ratio(right, all);
      }
      sum += ratio(precisions, right);
      met += right > 0 ? 1 : 0;
    }
    results.add("mean_average_precision", ratio(sum, met));
  }
};

}  // namespace

void add_decisions(tn::Plugin& plugin) {
  plugin.layer<PrecisionRecall>();
  plugin.layer<Auc>();
  plugin.layer<MeanAveragePrecision>();
}

}  // namespace tenon::metrics
