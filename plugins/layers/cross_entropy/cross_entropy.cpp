// The cost of classification. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

namespace {

using tn::Float;

enum { kInput = 0, kLabel = 1 };

// The least probability whose logarithm is taken, so that the cost is finite. Its inverse fits into float32.
constexpr double kLeastProbability = 1e-30;

struct CrossEntropy {
  static void describe(tn::LayerDescription& d) {
    d.type("cross_entropy",
           "Cross-entropy of a prediction and a label, one cost for each sample: -log(max(p[label], 1e-30)) for "
           "probabilities p; below 1e-30 the derivative is 0. With from_logits the input is x before the softmax, and "
           "the cost is log(sum_k exp(x_k - m)) + m - x[label], where m is the largest x_k: the same number, "
           "without over- or underflow, and with the derivative softmax(x) - onehot(label) at once. The label may be a "
           "distribution q as well: the cost is then the sum over the classes k of q_k times the cost of label k, and "
           "it is differentiable in both.");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, classes]: probabilities, or with from_logits any numbers");
    d.input("label",
            "[samples], integers: the number of the right class, from 0; or [samples, classes]: a distribution",
            TN_PORT_ANY);
    d.output("output", "[samples]: the cost of each");
    d.attribute(tn::bool_attribute("from_logits", false).doc("the input has not been through a softmax"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input_of_rank(kInput, 2, "[samples, classes]");
    const int64_t classes = planner.elements(kInput, 1);
    if (planner.input(kLabel).is_integer()) {
      planner.require_per_row(kLabel, input.leading(1));
      planner.index_limit(kLabel, classes);
    } else if (!planner.input(kLabel).same_shape(input)) {
      throw planner.bad_input(kLabel, "are not integers, so they must be a distribution for each sample")
          .expected(input);
    }
    planner.output(0, tn::Spec({input[0]}));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(kInput);
    const tn::Tensor label = body.input(kLabel);
    const bool logits = attributes.flag("from_logits");
    body.output(0, label.spec().is_integer() ? of_labels(body, input, label, logits)
                                             : of_distributions(body, input, label, logits));
  }

 private:
  // input [samples, classes], labels int [samples] -> costs [samples]. The derivative is the host's.
  static tn::Tensor of_labels(tn::Builder& body, const tn::Tensor& input, const tn::Tensor& labels, bool logits) {
    tn::Program cost;
    const Float x = cost.full();
    const tn::Int label = cost.per_row<tn::Int>();
    if (logits) {
      // Subtracting a constant from x does not change the cost, so nothing flows through the maximum: stop saves
      // computing 0.
      const Float shifted = x - stop(max_per_row(x));
      cost.output(log(sum_per_row(exp(shifted))) - sum_per_row(select(cost.column() == label, shifted, 0.0)));
    } else {
      const Float p = sum_per_row(select(cost.column() == label, x, 0.0));
      cost.output(-log(max(p, kLeastProbability)));
    }
    return body.pointwise(cost, {input, labels}).front();
  }

  // input [samples, classes], labels q [samples, classes] -> costs [samples] = -sum_k q_k log(p_k). The gradient of
  // logits is dy * (p * sum(q) - q), that of probabilities -dy * q / p (0 below the least one), that of q is -dy *
  // log(p).
  static tn::Tensor of_distributions(tn::Builder& body, const tn::Tensor& input, const tn::Tensor& labels,
                                     bool logits) {
    tn::Program cost;
    const Float x = cost.full();
    cost.output(-sum_per_row(cost.full() * log_probability(x, logits)));
    tn::GradientProgram backward(cost);
    const Float p = backward.input(kInput);
    const Float q = backward.input(kLabel);
    const Float dy = backward.result_gradient();
    const Float log_p = log_probability(p, logits);
    backward.output(logits ? dy * (exp(log_p) * sum_per_row(q) - q)
                           : select(p > kLeastProbability, -(dy * q / p), 0.0));
    backward.output(-(dy * log_p));
    return body.pointwise(cost, {input, labels}, 1, &backward).front();
  }

  // log(p) of the input [samples, classes], where p = softmax(x) for logits.
  static Float log_probability(const Float& x, bool logits) {
    if (!logits) return log(max(x, kLeastProbability));
    const Float shifted = x - max_per_row(x);
    return shifted - log(sum_per_row(exp(shifted)));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.cross_entropy", "0.1.0", "The cost of classification", "Apache-2.0");
  plugin.layer<CrossEntropy>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
