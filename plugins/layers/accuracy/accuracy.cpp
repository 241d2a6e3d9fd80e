// The share of samples whose class is right. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

namespace {

enum { kInput = 0, kLabel = 1 };    // ports
enum { kCorrect = 0, kCount = 1 };  // state

struct Accuracy {
  static void describe(tn::LayerDescription& d) {
    d.type("accuracy",
           "The share of samples whose largest score is that of the label. Of equal scores the first counts; a sample "
           "with a score that is not a number counts as wrong. Without samples the accuracy is 0.");
    d.role(TN_ROLE_METRIC);
    d.input("input", "[samples, classes]: scores; probabilities or not");
    d.input("label", "[samples]: the number of the right class, from 0", TN_PORT_INTEGER);
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input_of_rank(kInput, 2, "[samples, classes]");
    const int64_t classes = planner.elements(kInput, 1);
    planner.require_per_row(kLabel, input.leading(1));
    planner.index_limit(kLabel, classes);
    planner.state(2);
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor input = body.input(kInput);
    const int64_t classes = input.spec()[1].offset;
    // scores [samples, classes], labels int [samples] -> two sums over the samples. A NaN score equals no maximum, so
    // that first_best is `classes`, which no label is.
    tn::Program program;
    const tn::Float score = program.full();
    const tn::Int label = program.per_row<tn::Int>();
    const tn::Int first_best = min_per_row(select(score == max_per_row(score), program.column(), classes));
    program.output(sum_all(to_float(first_best == label)));
    program.output(sum_all(to_float(label == label)));  // 1 for each sample
    const std::vector<tn::Tensor> state = body.pointwise(program, {input, body.input(kLabel)});
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
