// Metrics of scores of classes: which class is called, and which is right.
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

void describe_classes(tn::LayerDescription& d) {
  d.role(TN_ROLE_METRIC);
  d.input("input", "[samples, ..., classes]: scores; probabilities or not");
  d.input("label",
          "[samples, ...]: the number of the right class, from 0; with several positions in a sample each counts",
          TN_PORT_INTEGER);
  d.attribute(tn::int_attribute("ignore_index").doc("a label that does not count, such as -100"));
}

int64_t plan_classes(tn::Planner& planner) {
  const tn::Spec input = planner.input(0);
  const int32_t positions = input.rank() - 1;
  if (positions < 1) throw planner.bad_input(0, "must be [samples, ..., classes]");
  planner.elements(0, 1);
  const int64_t classes = planner.elements(0, positions);
  planner.require_per_row(1, input.leading(positions));
  planner.index_limit(1, classes);
  if (planner.attributes().has("ignore_index")) planner.index_exempt(1, planner.attributes().integer("ignore_index"));
  return classes;
}

// Whether the label of a row counts.
Logical counts_of(const Attributes& attributes, const Int& label) {
  return attributes.has("ignore_index") ? label != attributes.integer("ignore_index") : label == label;
}

std::vector<tn::Tensor> over_rows(tn::Builder& body, const tn::Program& program) {
  const tn::Tensor input = body.input(0);
  return body.pointwise(program, {input, body.input(1)}, input.spec().rank() - 1);
}

// The share of samples for which Formula decides by the number of classes before the label.
template <typename Formula>
struct Top {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    describe_classes(d);
    d.attribute(Formula::attribute().at_least(1).doc("how many classes may be named for a sample"));
  }

  static void plan(tn::Planner& planner) {
    const int64_t classes = plan_classes(planner);
    if (planner.attributes().integer(Formula::kTop) > classes)
      throw tn::Failure(TN_INVALID, Formula::kTop, "is above the " + std::to_string(classes) + " classes of the input")
          .actual(planner.input(0));
    planner.state(2);
  }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    // scores [samples, ..., classes], labels int [samples, ...]. `before` is the number of classes before the label in
    // the order of scores; NaN compares false, so that it counts as before.
    tn::Program program;
    const Float score = program.full();
    const Int label = program.per_row<Int>();
    const Float own = sum_per_row(select(program.column() == label, score, 0.0));
    const Logical behind = score < own || (score == own && program.column() >= label);  // true of the label itself
    const Float before = sum_per_row(to_float(!behind));
    const Logical counts = counts_of(attributes, label);
    const auto top = static_cast<double>(attributes.integer(Formula::kTop));
    program.output(count(Formula::counts(before, top) && counts), TN_F64);
    program.output(count(counts), TN_F64);
    put_state(body, over_rows(body, program));
  }

  static void finalize(const Attributes&, const double* state, tn::Results& results) {
    results.add(Formula::kType, ratio(state[0], state[1]));
  }
};

struct ClassificationError {
  static constexpr const char* kType = "classification_error";
  static constexpr const char* kTop = "top";
  static constexpr const char* kDoc =
      "The share of samples whose label is not among the top classes with the largest scores. Of equal scores "
      "those of smaller numbers come first; a score that is not a number comes before all others, so that it "
      "never helps. Without samples the error is 0.";
  static tn::Attribute attribute() { return tn::int_attribute(kTop, 1); }
  static Logical counts(const Float& before, double top) { return before >= top; }
};

struct TopKAccuracy {
  static constexpr const char* kType = "top_k_accuracy";
  static constexpr const char* kTop = "k";
  static constexpr const char* kDoc =
      "The share of samples whose label is among the k classes with the largest scores, in the order of "
      "classification_error. Without samples the accuracy is 0.";
  static tn::Attribute attribute() { return tn::int_attribute(kTop, 5); }
  static Logical counts(const Float& before, double top) { return before < top; }
};

// Counts of samples by class: in state 0 the samples, in 1 the samples times the classes, and from 2 on three for each
// class: label and prediction are the class, the prediction is, the label is.
struct ClassCounts {
  // The state has three numbers for each class, and each is an output of one program.
  static constexpr int64_t kMostClasses = 256;

  static void plan(tn::Planner& planner) {
    const int64_t classes = plan_classes(planner);
    if (classes > kMostClasses)
      throw planner.bad_input(0, "has " + std::to_string(classes) + " classes; at most 256 are offered",
                              TN_UNSUPPORTED);
    planner.state(static_cast<uint32_t>(2 + 3 * classes));
  }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    const int64_t classes = body.input(0).spec().back().offset;
    // scores [samples, ..., classes], labels int [samples, ...]
    tn::Program program;
    const Float score = program.full();
    const Int label = program.per_row<Int>();
    const Int column = program.column();
    const Int first_best = min_per_row(select(score == max_per_row(score), column, classes));
    const Logical counts = counts_of(attributes, label);
    const Logical named = first_best == column && counts;
    const Logical real = label == column && counts;
    const Float samples = count(counts);
    program.output(samples, TN_F64);
    program.output(samples * static_cast<double>(classes), TN_F64);  // finalize derives the number of classes from it
    const Float sums[] = {sum_per_column(to_float(named && real)), sum_per_column(to_float(named)),
                          sum_per_column(to_float(real))};
    for (int64_t k = 0; k < classes; ++k)
      for (const Float& sum : sums) program.output(sum_all(select(column == k, sum, 0.0)), TN_F64);
    put_state(body, over_rows(body, program));
  }

 protected:
  static int64_t classes_of(const double* state) { return std::llround(ratio(state[1], state[0])); }
};

struct MacroPrecisionRecall : ClassCounts {
  static void describe(tn::LayerDescription& d) {
    d.type("macro_precision_recall",
           "Precision, recall and F1 (see precision_recall) of each class against all others, where a sample is called "
           "the class with its largest score, the first among equals; the means over all classes, each with the same "
           "weight. A class that is never called has precision 0, one that never occurs has recall 0. At most 256 "
           "classes.");
    describe_classes(d);
  }

  static void finalize(const Attributes&, const double* state, tn::Results& results) {
    const int64_t classes = classes_of(state);
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

struct MeanIou : ClassCounts {
  static void describe(tn::LayerDescription& d) {
    d.type("mean_iou",
           "For each class, of the samples that have it as their label or their prediction the share that has it as "
           "both: the intersection over the union (Jaccard, 1901); the mean over the classes that occur as label or "
           "prediction. A sample is called the class with its largest score, the first among equals. Without samples "
           "it is 0. At most 256 classes.");
    describe_classes(d);
  }

  static void finalize(const Attributes&, const double* state, tn::Results& results) {
    double sum = 0, met = 0;
    for (int64_t k = 0; k < classes_of(state); ++k) {
      const double* sums = state + 2 + 3 * k;
      const double either = sums[1] + sums[2] - sums[0];
      sum += ratio(sums[0], either);
      met += either > 0 ? 1 : 0;
    }
    results.add("mean_iou", ratio(sum, met));
  }
};

struct ConfusionMatrix {
  static constexpr int64_t kMostClasses = 32;

  static void describe(tn::LayerDescription& d) {
    d.type("confusion_matrix",
           "The numbers of samples by label and prediction: value \"i_as_k\" counts the samples of label i that are "
           "called class k, the one with their largest score, the first among equals. A score that is not a number "
           "never is the largest; of samples that have such scores alone class 0 is called.");
    describe_classes(d);
    d.attribute(tn::int_attribute("classes").required().at_least(2).at_most(kMostClasses).doc("number of classes"));
  }

  static void plan(tn::Planner& planner) {
    const int64_t classes = plan_classes(planner);
    if (planner.attributes().integer("classes") != classes)
      throw tn::Failure(TN_INVALID, "classes", "differs from the " + std::to_string(classes) + " classes of the input")
          .actual(planner.input(0));
    planner.state(static_cast<uint32_t>(classes * classes));
  }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    // scores [samples, ..., classes], labels int [samples, ...] -> histogram [classes * classes] of label * classes +
    // prediction
    const int64_t classes = attributes.integer("classes");
    tn::Program program;
    const Float score = program.full();
    const Int label = program.per_row<Int>();
    const Int first_best = min_per_row(select(score == max_per_row(score), program.column(), classes));
    const Int called = select(first_best < classes, first_best, 0);
    const Logical counts = counts_of(attributes, label);
    program.output(select(counts, label * classes + called, 0), TN_I32);
    program.output(to_float(counts));
    const std::vector<tn::Tensor> made = over_rows(body, program);
    put_histogram(body, body.scatter_add(made[1], made[0], classes * classes), classes * classes);
  }

  static void finalize(const Attributes& attributes, const double* state, tn::Results& results) {
    const int64_t classes = attributes.integer("classes");
    for (int64_t i = 0; i < classes; ++i)
      for (int64_t k = 0; k < classes; ++k)
        results.add((std::to_string(i) + "_as_" + std::to_string(k)).c_str(), state[i * classes + k]);
  }
};

}  // namespace

void add_classes(tn::Plugin& plugin) {
  plugin.layer<Top<ClassificationError>>();
  plugin.layer<Top<TopKAccuracy>>();
  plugin.layer<MacroPrecisionRecall>();
  plugin.layer<MeanIou>();
  plugin.layer<ConfusionMatrix>();
}

}  // namespace tenon::metrics
