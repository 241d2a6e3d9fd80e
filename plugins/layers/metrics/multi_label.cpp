// The metric of samples that may have several labels each. SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "metrics.h"

namespace tenon::metrics {

namespace {

using tn::Attributes;
using tn::Float;
using tn::Logical;

struct MultiLabel : tn::DeclaresNumbers<MultiLabel> {
  // The threshold where nothing is stated, which is one of probabilities.
  static constexpr double kUsual = 0.5;
  // The state has three numbers for each label.
  static constexpr int64_t kMostLabels = 1024;
  enum { kSamples = 0, kCells = 1, kExact = 2, kWrong = 3, kCounts = 4 };

  static void describe(tn::LayerDescription& d) {
    d.type("multi_label",
           "Of samples that have any number of labels each, where those with a score above threshold are named "
           "(Tsoumakas, Katakis and Vlahavas, \"Mining multi-label data\", 2010): subset_accuracy, the share of "
           "samples whose labels are all right; hamming_loss, the share of labels, over all samples, that are named "
           "and wrong or not named and right; micro_f1, the F1 of precision_recall over all labels together; "
           "macro_f1, the mean over the labels of the F1 of each, where one that is neither named nor right has 0. "
           "Without samples they are 0. At most 1024 labels.");
    d.role(TN_ROLE_METRIC);
    d.input("input", "[samples, labels]: a score for each label");
    d.input("label", "the shape of the input: 1 for a label that the sample has, 0 for others");
    d.attribute(
        tn::float_attribute("threshold", kUsual).doc("scores above it mean true; 0 for scores before a sigmoid"));
  }

  static void plan(tn::Planner& planner) {
    planner.require_shape(1, planner.input_of_rank(0, 2, "[samples, labels]"));
    const int64_t labels = planner.elements(0, 1);
    if (labels > kMostLabels)
      throw planner.bad_input(0, "has " + std::to_string(labels) + " labels; at most 1024 are offered", TN_UNSUPPORTED);
    planner.state(static_cast<uint32_t>(kCounts + 3 * labels));
  }
  static void numbers(tn::NumberDeclarer& declarer) {
    declarer.input(1, tn::Numbers::zero_or_one());
    if (declarer.attributes().number("threshold") != kUsual) return;
    declarer.input(0, tn::Numbers::probabilities().advice("for scores before a sigmoid set threshold = 0"));
  }

  // scores and labels [samples, labels] -> samples; samples * labels, from which finalize derives the number of labels;
  // samples without a wrong label; wrong labels; then by label how often it is named and right, named, and right.
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const int64_t labels = body.input(0).spec()[1].offset;
    tn::Program program;
    const Logical named = program.full() > attributes.number("threshold");
    const Logical real = program.full() > 0.5;
    const Float wrong = to_float((named || real) && !(named && real));
    const Float samples = count_rows(program.row());
    program.output(samples, TN_F64);
    program.output(samples * static_cast<double>(labels), TN_F64);
    program.output(count(sum_per_row(wrong) == 0), TN_F64);
    program.output(sum_all(wrong), TN_F64);
    for (const Logical& each : {named && real, named, real}) program.output(sum_per_column(to_float(each)));
    const std::vector<tn::Tensor> sums = body.pointwise(program, {body.input(0), body.input(1)});
    put_state(body, {sums[0], sums[1], sums[2], sums[3]});
    for (int64_t k = 0; k < 3; ++k) put_histogram(body, sums[static_cast<size_t>(4 + k)], labels, kCounts + k * labels);
  }

  static void finalize(const Attributes&, const double* state, tn::Results& results) {
    const int64_t labels = std::llround(ratio(state[kCells], state[kSamples]));
    const double *right = state + kCounts, *named = right + labels, *real = named + labels;
    double sums[3] = {0, 0, 0}, macro = 0;
    for (int64_t k = 0; k < labels; ++k) {
      sums[0] += right[k];
      sums[1] += named[k];
      sums[2] += real[k];
      macro += quality(right[k], named[k], real[k]).f1 / static_cast<double>(labels);
    }
    results.add("subset_accuracy", ratio(state[kExact], state[kSamples]));
    results.add("hamming_loss", ratio(state[kWrong], state[kCells]));
    results.add("micro_f1", quality(sums[0], sums[1], sums[2]).f1);
    results.add("macro_f1", macro);
  }
};

}  // namespace

void add_multi_label(tn::Plugin& plugin) { plugin.layer<MultiLabel>(); }

}  // namespace tenon::metrics
