// The share of samples whose class is right. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>
#include <vector>

namespace {

enum { kInput = 0, kLabel = 1 };    // ports
enum { kCorrect = 0, kCount = 1 };  // state

struct Accuracy {
  static void describe(tn::LayerDescription& d) {
    d.type("accuracy",
           "The share of samples whose largest score is that of the label. Of equal scores the first counts; a sample "
           "with a score that is not a number counts as wrong. With several positions in a sample each is one. Those "
           "whose label is ignore_index do not count. Without samples the accuracy is 0. Of one score for each sample "
           "there "
           "is binary_accuracy.");
    d.role(TN_ROLE_METRIC);
    d.input("input", "[samples, ..., classes]: scores; probabilities or not");
    d.input("label", "[samples, ...]: the number of the right class, from 0", TN_PORT_INTEGER);
    d.attribute(tn::int_attribute("ignore_index").doc("a label that does not count, such as -100"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(kInput);
    const int32_t positions = input.rank() - 1;
    if (positions < 1) throw planner.bad_input(kInput, "must be [samples, ..., classes]");
    planner.elements(kInput, 1);
    planner.require_per_row(kLabel, input.leading(positions));
    planner.index_limit(kLabel, planner.elements(kInput, positions));
    if (planner.attributes().has("ignore_index"))
      planner.index_exempt(kLabel, planner.attributes().integer("ignore_index"));
    planner.state(2);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(kInput);
    const int32_t leading = input.spec().rank() - 1;
    const int64_t classes = input.spec().back().offset;
    // scores [samples, ..., classes], labels int [samples, ...] -> two sums over the rows. A NaN score equals no
    // maximum, so that first_best is `classes`, which no label is.
    tn::Program program;
    const tn::Float score = program.full();
    const tn::Int label = program.per_row<tn::Int>();
    const tn::Int first_best = min_per_row(select(score == max_per_row(score), program.column(), classes));
    if (attributes.has("ignore_index")) {
      const tn::Logical counts = label != attributes.integer("ignore_index");
      program.output(sum_all(to_float(first_best == label && counts)));
      program.output(sum_all(to_float(counts)));
    } else {
      program.output(sum_all(to_float(first_best == label)));
      program.output(sum_all(to_float(label == label)));  // 1 for each row
    }
    const std::vector<tn::Tensor> state = body.pointwise(program, {input, body.input(kLabel)}, leading);
    body.state(kCorrect, state[kCorrect]);
    body.state(kCount, state[kCount]);
  }

  static void finalize(const tn::Attributes&, const double* state, tn::Results& results) {
    results.add("accuracy", state[kCount] > 0 ? state[kCorrect] / state[kCount] : 0);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.accuracy", "0.1.0", "The accuracy of a classification", "Apache-2.0");
  plugin.layer<Accuracy>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
