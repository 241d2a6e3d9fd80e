// The cost of classification. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

namespace {

enum { kInput = 0, kLabel = 1 };

// Keeps the logarithm finite. Small enough to matter only where a probability has all but vanished, large enough that
// its inverse fits into float32.
constexpr double kLeastProbability = 1e-30;

struct CrossEntropy {
  static void describe(tn::LayerDescription& d) {
    d.type("cross_entropy",
           "Cross-entropy of a prediction and a label, one cost for each sample: -log(max(p[label], 1e-30)) for "
           "probabilities p; below 1e-30 the derivative is 0. With from_logits the input is x before the softmax, and "
           "the cost is log(sum_k exp(x_k - m)) + m - x[label], where m is the largest x_k: the same number, "
           "without over- or underflow, and with the derivative softmax(x) - onehot(label) at once.");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, classes]: probabilities, or with from_logits any numbers");
    d.input("label", "[samples]: the number of the right class, from 0", TN_PORT_ANY);
    d.output("output", "[samples]: the cost of each");
    d.attribute(tn::bool_attribute("from_logits", false).doc("the input has not been through a softmax"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input_of_rank(kInput, 2, "[samples, classes]");
    const tn::Spec samples = input.leading(1);
    const int64_t classes = planner.elements(kInput, 1);
    if (!planner.input(kLabel).is_integer())
      throw planner.bad_input(kLabel, "distributions as labels are not offered; must be integers", TN_UNSUPPORTED)
          .expected(tn::Spec({input[0]}, TN_I64));
    planner.require_per_row(kLabel, samples);
    planner.index_limit(kLabel, classes);
    planner.output(0, tn::Spec({input[0]}));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    tn::Program cost;
    const tn::Float x = cost.full();
    const tn::Int label = cost.per_row<tn::Int>();
    if (attributes.flag("from_logits")) {
      // A shift by a constant: what flows through the maximum adds up to nothing, so it is stopped.
      const tn::Float shifted = x - stop(max_per_row(x));
      cost.output(log(sum_per_row(exp(shifted))) - sum_per_row(select(cost.column() == label, shifted, 0.0)));
    } else {
      const tn::Float p = sum_per_row(select(cost.column() == label, x, 0.0));
      cost.output(-log(max(p, kLeastProbability)));
    }
    body.output(0, body.pointwise(cost, {body.input(kInput), body.input(kLabel)}).front());
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.cross_entropy", "0.1.0", "The cost of classification", "Apache-2.0");
  plugin.layer<CrossEntropy>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
