// Metrics: sums that the host adds up over minibatches, and the results computed from them at the end.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <tenon/plugin.hpp>

#include "means.h"

namespace {

using tn::Attributes;
using tn::Float;
using tn::Int;
using tn::Logical;

// The number of rows for which `each` [rows] is true. Exact for minibatches below 2^24 rows.
Float count(const Logical& each) { return sum_all(to_float(each)); }
// The number of rows; `row` is any PER_ROW value that is not negative.
Float count_rows(const Int& row) { return count(row >= 0); }

// Makes output k of a program number k of the metric's state.
void put_state(tn::Builder& body, const std::vector<tn::Tensor>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) body.state(static_cast<uint32_t>(i), outputs[i]);
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

// ---- scores of classes

void describe_classes(tn::LayerDescription& d) {
  d.role(TN_ROLE_METRIC);
  d.input("input", "[samples, classes]: scores; probabilities or not");
  d.input("label", "[samples]: the number of the right class, from 0", TN_PORT_INTEGER);
}

int64_t plan_classes(tn::Planner& planner) {
  const tn::Spec input = planner.input_of_rank(0, 2, "[samples, classes]");
  const int64_t classes = planner.elements(0, 1);
  planner.require_per_row(1, input.leading(1));
  planner.index_limit(1, classes);
  return classes;
}

struct ClassificationError {
  static void describe(tn::LayerDescription& d) {
    d.type("classification_error",
           "The share of samples whose label is not among the top classes with the largest scores. Of equal scores "
           "those of smaller numbers come first; a score that is not a number comes before all others, so that it "
           "never helps. Without samples the error is 0.");
    describe_classes(d);
    d.attribute(tn::int_attribute("top", 1).at_least(1).doc("how many classes may be named for a sample"));
  }

  static void plan(tn::Planner& planner) {
    const int64_t classes = plan_classes(planner);
    if (planner.attributes().integer("top") > classes)
      throw tn::Failure(TN_INVALID, "top", "is above the " + std::to_string(classes) + " classes of the input")
          .actual(planner.input(0));
    planner.state(2);
  }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    // scores [samples, classes], labels int [samples]. `before` is the number of classes before the label in the order
    // of scores; NaN compares false, so that it counts as before.
    tn::Program program;
    const Float score = program.full();
    const Int label = program.per_row<Int>();
    const Float own = sum_per_row(select(program.column() == label, score, 0.0));
    const Logical behind = score < own || (score == own && program.column() >= label);  // true of the label itself
    const Float before = sum_per_row(to_float(!behind));
    program.output(count(before >= static_cast<double>(attributes.integer("top"))), TN_F64);
    program.output(count_rows(label), TN_F64);
    put_state(body, body.pointwise(program, {body.input(0), body.input(1)}));
  }

  static void finalize(const Attributes&, const double* state, tn::Results& results) {
    results.add("classification_error", ratio(state[0], state[1]));
  }
};

// ---- precision, recall, F1

struct Quality {
  double precision, recall, f1;
};
Quality quality(double right, double named, double real) {
  const double precision = ratio(right, named);
  const double recall = ratio(right, real);
  return {precision, recall, ratio(2 * right, named + real)};
}
void add_quality(const Quality& q, tn::Results& results) {
  results.add("precision", q.precision);
  results.add("recall", q.recall);
  results.add("f1", q.f1);
}

// One score for each sample, [samples] or [samples, 1], and a label of 0 or 1.
void describe_binary(tn::LayerDescription& d) {
  d.role(TN_ROLE_METRIC);
  d.input("input", "[samples], or [samples, 1]: the score of \"true\"");
  d.input("label", "[samples]: 1 for true, 0 for false", TN_PORT_INTEGER);
}
void plan_binary(tn::Planner& planner) {
  const tn::Spec input = planner.input(0);
  if (input.rank() < 1 || input.rank() > 2 || (input.rank() == 2 && !input[1].same(1)))
    throw planner.bad_input(0, "must be one score for each sample")
        .expected(tn::Spec({input.rank() > 0 ? input[0] : 1}));
  planner.require_per_row(1, input.leading(1));
  planner.index_limit(1, 2);
}

struct PrecisionRecall {
  static void describe(tn::LayerDescription& d) {
    d.type("precision_recall",
           "Of the samples called true (score above threshold), the share that is true: precision; of the true ones, "
           "the share that was called so: recall; and F1 = 2 precision recall / (precision + recall) (van Rijsbergen, "
           "\"Information retrieval\", 1979). Where nothing is to be divided by they are 0.");
    describe_binary(d);
    d.attribute(tn::float_attribute("threshold", 0.5).doc("scores above it mean true; 0 for scores before a sigmoid"));
  }

  static void plan(tn::Planner& planner) {
    plan_binary(planner);
    planner.state(3);
  }

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

struct MacroPrecisionRecall {
  // The state has three numbers for each class, and each is an output of one program.
  static constexpr int64_t kMostClasses = 256;

  static void describe(tn::LayerDescription& d) {
    d.type("macro_precision_recall",
           "Precision, recall and F1 (see precision_recall) of each class against all others, where a sample is called "
           "the class with its largest score, the first among equals; the means over all classes, each with the same "
           "weight. A class that is never called has precision 0, one that never occurs has recall 0. At most 256 "
           "classes.");
    describe_classes(d);
  }

  static void plan(tn::Planner& planner) {
    const int64_t classes = plan_classes(planner);
    if (classes > kMostClasses)
      throw planner.bad_input(0, "has " + std::to_string(classes) + " classes; at most 256 are offered",
                              TN_UNSUPPORTED);
    planner.state(static_cast<uint32_t>(2 + 3 * classes));
  }

  static void lower(const Attributes&, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const int64_t classes = input.spec()[1].offset;
    // scores [samples, classes], labels int [samples] -> samples, samples * classes, then three counts of samples for
    // each class: prediction and label are the class, the prediction is, the label is.
    tn::Program program;
    const Float score = program.full();
    const Int label = program.per_row<Int>();
    const Int column = program.column();
    const Int first_best = min_per_row(select(score == max_per_row(score), column, classes));
    const Logical named = first_best == column;
    const Logical real = label == column;
    const Float samples = count_rows(label);
    program.output(samples, TN_F64);
    program.output(samples * static_cast<double>(classes), TN_F64);  // finalize derives the number of classes from it
    const Float sums[] = {sum_per_column(to_float(named && real)), sum_per_column(to_float(named)),
                          sum_per_column(to_float(real))};
    for (int64_t k = 0; k < classes; ++k)
      for (const Float& sum : sums) program.output(sum_all(select(column == k, sum, 0.0)), TN_F64);
    put_state(body, body.pointwise(program, {input, body.input(1)}));
  }

  static void finalize(const Attributes&, const double* state, tn::Results& results) {
    const auto classes = static_cast<int64_t>(std::llround(ratio(state[1], state[0])));
    Quality mean = {0, 0, 0};
    for (int64_t k = 0; k < classes; ++k) {
      const double* sums = state + 2 + 3 * k;
      const Quality q = quality(sums[0], sums[1], sums[2]);
      mean.precision += q.precision / static_cast<double>(classes);
      mean.recall += q.recall / static_cast<double>(classes);
      mean.f1 += q.f1 / static_cast<double>(classes);
    }
    add_quality(mean, results);
  }
};

// ---- area under the receiver operating characteristic

struct Auc {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "auc",
        "Area under the receiver operating characteristic: the probability that a true sample scores above a false "
        "one, where equal scores count one half (Hanley and McNeil, \"The meaning and use of the area under a "
        "receiver operating characteristic (ROC) curve\", 1982). Counted in bins of equal width between low and "
        "high; scores outside count in the first and the last, NaN in the first. Pairs within one bin count one half; "
        "auc_error bounds that error. Without a sample of each kind the area is 0.5.");
    describe_binary(d);
    d.attribute(tn::int_attribute("bins", 200).at_least(2).at_most(1000).doc("number of bins"));
    d.attribute(tn::float_attribute("low", 0).doc("scores below it count in the first bin"));
    d.attribute(tn::float_attribute("high", 1).doc("scores above it count in the last bin; above low"));
  }

  static void plan(tn::Planner& planner) {
    const Attributes attributes = planner.attributes();
    if (!(attributes.number("high") > attributes.number("low")))
      throw tn::Failure(TN_INVALID, "high", "must be above low");
    plan_binary(planner);
    planner.state(static_cast<uint32_t>(2 * attributes.integer("bins")));
  }

  // scores [samples], labels 0 or 1 [samples] -> histogram [2 * bins]: state 2k counts the false samples in bin k,
  // state 2k + 1 the true ones.
  static void lower(const Attributes& attributes, tn::Builder& body) {
    const int64_t bins = attributes.integer("bins");
    const double low = attributes.number("low");
    const double scale = static_cast<double>(bins) / (attributes.number("high") - low);
    tn::Program program;
    const Float score = program.per_row();
    const Float place = min(max((select(score == score, score, low) - low) * scale, 0), static_cast<double>(bins - 1));
    const Int slot = 2 * to_int(place) + program.per_row<Int>();
    program.output(slot, TN_I32);
    program.output(to_float(slot >= 0));  // 1 for each sample
    const std::vector<tn::Tensor> made = body.pointwise(program, {body.input(0), body.input(1)});
    const tn::Tensor histogram = body.scatter_add(made[1], made[0], 2 * bins);
    for (int64_t k = 0; k < 2 * bins; ++k) body.state(static_cast<uint32_t>(k), body.slice(histogram, 0, k, 1));
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

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.metrics", "0.1.0", "Metrics of numbers, classes and decisions", "Apache-2.0");
  tenon::metrics::add_means(plugin);
  plugin.layer<ClassificationError>();
  plugin.layer<PrecisionRecall>();
  plugin.layer<MacroPrecisionRecall>();
  plugin.layer<Auc>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
