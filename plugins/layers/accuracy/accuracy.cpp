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
           "whose label is ignore_index do not count. Without samples the accuracy is 0.");
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
    if (!planner.attributes().has("ignore_index")) planner.index_limit(kLabel, planner.elements(kInput, positions));
    planner.state(2);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(kInput);
    const int32_t leading = input.spec().rank() - 1;
    const tn::Tensor labels = body.input(kLabel);
    const int64_t classes = input.spec().back().offset;
    // scores [samples, ..., classes], labels int [samples, ...] -> two sums over the rows. A NaN score equals no
    // maximum, so that first_best is `classes`, which no label is.
    tn::Program program;
    const tn::Float score = program.full();
    const tn::Int label = program.per_row<tn::Int>();
    const tn::Int first_best = min_per_row(select(score == max_per_row(score), program.column(), classes));
    std::vector<tn::Tensor> operands{input, labels};
    if (attributes.has("ignore_index")) {
      const int64_t ignored = attributes.integer("ignore_index");
      const tn::Logical counts = label != ignored && program.per_row() > 0;
      operands.push_back(checked(body, labels, ignored, leading, classes));
      program.output(sum_all(to_float(first_best == label && counts)));
      program.output(sum_all(to_float(counts)));
    } else {
      program.output(sum_all(to_float(first_best == label)));
      program.output(sum_all(to_float(label == label)));  // 1 for each row
    }
    const std::vector<tn::Tensor> state = body.pointwise(program, operands, leading);
    body.state(kCorrect, state[kCorrect]);
    body.state(kCount, state[kCount]);
  }

  // labels -> ones. The gather ends the step with an error that names the first label which is neither a class nor
  // ignored: the limit of an input has no exception.
  static tn::Tensor checked(tn::Builder& body, const tn::Tensor& labels, int64_t ignored, int32_t leading,
                            int64_t classes) {
    tn::Program program;
    const tn::Int label = program.per_row<tn::Int>();
    program.output(select(label == ignored, tn::Int(0), label));
    const std::vector<double> ones(static_cast<size_t>(classes), 1.0);
    return body.gather(body.constant(tn::Spec({classes}), ones), body.pointwise(program, {labels}, leading).front());
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
