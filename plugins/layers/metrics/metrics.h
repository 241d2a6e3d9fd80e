// The metrics of this plugin, and what they share: sums that the host adds up over minibatches, and the results
// computed from them at the end. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/draft/numbers.hpp>
#include <tenon/plugin.hpp>

namespace tenon::metrics {

// The number of rows for which `each` [rows] is true. Exact for minibatches below 2^24 rows.
inline tn::Float count(const tn::Logical& each) { return sum_all(to_float(each)); }
// The number of rows; `row` is any PER_ROW value that is not negative.
inline tn::Float count_rows(const tn::Int& row) { return count(row >= 0); }

// Makes output k of a program number k of the metric's state.
inline void put_state(tn::Builder& body, const std::vector<tn::Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) body.state(static_cast<uint32_t>(i), outputs[i]);
}

// Makes element k of `histogram` [count] number first + k of the state.
inline void put_histogram(tn::Builder& body, const tn::Tensor& histogram, int64_t count, int64_t first = 0) {
  for (int64_t k = 0; k < count; ++k) body.state(static_cast<uint32_t>(first + k), body.slice(histogram, 0, k, 1));
}

// Throws unless input 0 has samples and, if `pair`, input 1 has as many values; `states` numbers are added up.
inline void plan_values(tn::Planner& planner, bool pair, uint32_t states) {
  if (planner.input(0).rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
  planner.elements(0, 1);
  if (pair) planner.require_values(1);
  planner.state(states);
}

// The two inputs, in the shape of the first.
inline std::vector<tn::Tensor> pair_of(tn::Builder& body) {
  return {body.input(0), body.input(1).view(body.input(0).spec())};
}

inline double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

struct Quality {
  double precision, recall, f1;
};
inline Quality quality(double right, double named, double real) {
  const double precision = ratio(right, named);
  const double recall = ratio(right, real);
  return {precision, recall, ratio(2 * right, named + real)};
}
inline void add_quality(const Quality& q, tn::Results& results) {
  results.add("precision", q.precision);
  results.add("recall", q.recall);
  results.add("f1", q.f1);
}

// One score for each sample, [samples] or [samples, 1], and a label of 0 or 1.
inline void describe_binary(tn::LayerDescription& d) {
  d.role(TN_ROLE_METRIC);
  d.input("input", "[samples], or [samples, 1]: the score of \"true\"");
  d.input("label", "[samples]: 1 for true, 0 for false", TN_PORT_INTEGER);
}
inline void plan_binary(tn::Planner& planner) {
  const tn::Spec input = planner.input(0);
  if (input.rank() < 1 || input.rank() > 2 || (input.rank() == 2 && !input[1].same(1)))
    throw planner.bad_input(0, "must be one score for each sample")
        .expected(tn::Spec({input.rank() > 0 ? input[0] : 1}));
  planner.require_per_row(1, input.leading(1));
  planner.index_limit(1, 2);
}

// The score above which a sample is called true. Where nothing is stated it is one of probabilities.
struct Threshold {
  static constexpr double kUsual = 0.5;
  static void describe(tn::LayerDescription& d) {
    d.attribute(
        tn::float_attribute("threshold", kUsual).doc("scores above it mean true; 0 for scores before a sigmoid"));
  }
  static void numbers(tn::NumberDeclarer& declarer) {
    if (declarer.attributes().number("threshold") != kUsual) return;
    declarer.input(0, tn::Numbers::probabilities().advice("for scores before a sigmoid set threshold = 0"));
  }
};

// average, mean_squared_error, mean_absolute_error, perplexity
void add_means(tn::Plugin& plugin);
// r2, correlation
void add_agreement(tn::Plugin& plugin);
// classification_error, top_k_accuracy, macro_precision_recall, mean_iou, confusion_matrix
void add_classes(tn::Plugin& plugin);
// precision_recall, auc, mean_average_precision
void add_decisions(tn::Plugin& plugin);
// binary_accuracy, f_beta, matthews_correlation, calibration_error
void add_binary(tn::Plugin& plugin);
// multi_label
void add_multi_label(tn::Plugin& plugin);
// bleu
void add_bleu(tn::Plugin& plugin);
// chunk_f1
void add_chunks(tn::Plugin& plugin);

}  // namespace tenon::metrics
