// The cost of classification. SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <tenon/draft/numbers.hpp>
#include <tenon/plugin.hpp>
#include <vector>

namespace {

using tn::Float;

enum { kInput = 0, kLabel = 1, kWeight = 2 };

// The least probability whose logarithm is taken, so that the cost is finite. Its inverse fits into float32.
constexpr double kLeastProbability = 1e-30;

struct CrossEntropy : tn::DeclaresNumbers<CrossEntropy> {
  static void describe(tn::LayerDescription& d) {
    d.type("cross_entropy",
           "Cross-entropy of a prediction and a label, one cost for each sample: -log(max(p[label], 1e-30)) for "
           "probabilities p; below 1e-30 the derivative is 0. With from_logits the input is x before the softmax, and "
           "the cost is log(sum_k exp(x_k - m)) + m - x[label], where m is the largest x_k: the same number, "
           "without over- or underflow, and with the derivative softmax(x) - onehot(label) at once. The label may be a "
           "distribution q as well: the cost is then the sum over the classes k of q_k times the cost of label k, and "
           "it is differentiable in both. With several positions in a sample its cost is the sum over them. Each "
           "position counts with its weight times the weight of its class; one whose label is ignore_index, or whose "
           "weight is 0, does not count.");
    d.role(TN_ROLE_COST);
    d.input("input", "[samples, ..., classes]: probabilities, or with from_logits any numbers");
    d.input(
        "label",
        "[samples, ...], integers: the number of the right class, from 0; or [samples, ..., classes]: a distribution",
        TN_PORT_ANY);
    d.input("weight", "[samples, ...]: the weight of each position, such as a mask of 1 and 0", TN_PORT_OPTIONAL);
    d.output("output", "[samples]: the cost of each");
    d.attribute(tn::bool_attribute("from_logits", false).doc("the input has not been through a softmax"));
    d.attribute(tn::floats_attribute("class_weights").at_least(0).doc("a weight for each class; without it all are 1"));
    d.attribute(tn::int_attribute("ignore_index").doc("a label that does not count, such as -100"));
    d.attribute(tn::float_attribute("label_smoothing")
                    .at_least(0)
                    .at_most(1)
                    .doc("this share of a label is divided equally between all classes (Szegedy et al., 2016)"));
    d.attribute(tn::string_attribute("average")
                    .one_of({"samples", "weights"})
                    .doc("the cost of a minibatch is the sum divided by its samples (the default), or by the sum of "
                         "the weights (as in "
                         "PyTorch), 0 if that is 0; then the costs of samples depend on the minibatch"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Attributes attributes = planner.attributes();
    const tn::Spec input = planner.input(kInput);
    if (input.rank() < 2) throw planner.bad_input(kInput, "must be [samples, ..., classes]");
    planner.elements(kInput, 1);
    const tn::Spec positions = input.leading(input.rank() - 1);
    const int64_t classes = planner.elements(kInput, input.rank() - 1);
    if (planner.input(kLabel).is_integer()) {
      planner.require_per_row(kLabel, positions);
      planner.index_limit(kLabel, classes);
      if (attributes.has("ignore_index")) planner.index_exempt(kLabel, attributes.integer("ignore_index"));
    } else if (!planner.input(kLabel).same_shape(input)) {
      throw planner.bad_input(kLabel, "are not integers, so they must be a distribution for each sample")
          .expected(input);
    } else if (attributes.has("ignore_index") || smoothing(attributes) > 0) {
      throw planner.bad_input(kLabel, "must be integers for ignore_index and label_smoothing");
    }
    if (planner.has_input(kWeight)) planner.require_per_row(kWeight, positions);
    if (attributes.has("class_weights") && attributes.numbers("class_weights").size() != static_cast<size_t>(classes))
      throw tn::Failure(TN_INVALID, "class_weights",
                        "expected " + std::to_string(classes) + " numbers, one for each class of the input, got " +
                            std::to_string(attributes.numbers("class_weights").size()));
    planner.output(0, tn::Spec({input[0]}));
  }

  static void numbers(tn::NumberDeclarer& declarer) {
    const tn::Attributes attributes = declarer.attributes();
    tn::Numbers shares = tn::Numbers::probabilities().unless_weightless(kWeight);
    if (attributes.has("ignore_index"))
      shares = shares.unless_ignored(kLabel, static_cast<double>(attributes.integer("ignore_index")));
    if (!attributes.flag("from_logits"))
      declarer.input(kInput, shares.advice("for numbers before a softmax set from_logits = true"));
    if (!declarer.is_integer(kLabel)) declarer.input(kLabel, shares);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(kInput);
    const tn::Tensor label = body.input(kLabel);
    const std::optional<tn::Tensor> weight = body.optional_input(kWeight);
    const bool logits = attributes.flag("from_logits");
    const bool weighted = weight || attributes.has("class_weights") || attributes.has("ignore_index") ||
                          smoothing(attributes) > 0 || by_weights(attributes);
    if (weighted || input.spec().rank() > 2)
      return body.output(0, of_positions(attributes, body, input, label, weight));
    body.output(0, label.spec().is_integer() ? of_labels(body, input, label, logits)
                                             : of_distributions(body, input, label, logits));
  }

 private:
  static bool by_weights(const tn::Attributes& attributes) {
    return attributes.has("average") && std::string(attributes.text("average")) == "weights";
  }

  static double smoothing(const tn::Attributes& attributes) {
    return attributes.has("label_smoothing") ? attributes.number("label_smoothing") : 0;
  }

  // input [samples, ..., classes], labels [samples, ...] or distributions, weights [samples, ...] -> costs [samples].
  static tn::Tensor of_positions(const tn::Attributes& attributes, tn::Builder& body, const tn::Tensor& input,
                                 const tn::Tensor& labels, const std::optional<tn::Tensor>& weights) {
    const tn::Spec shape = input.spec();
    const int32_t leading = shape.rank() - 1;
    const double classes = static_cast<double>(shape.back().offset);
    std::vector<tn::Tensor> operands{input, labels};
    tn::Program cost;
    Float x = cost.full();
    std::optional<Float> weight, class_weight;
    const bool is_label = labels.spec().is_integer();
    std::optional<tn::Int> label;
    if (is_label) label = cost.per_row<tn::Int>();
    Float share = is_label ? smoothed(cost, *label, smoothing(attributes) / classes, classes) : cost.full();
    if (weights) {
      weight = cost.per_row();
      operands.push_back(*weights);
      if (!is_label) share = select(*weight == 0, 0.0, share);
      x = select(*weight == 0, 0.0, x);  // 0 times a derivative that is not a number would not be 0
    }
    if (attributes.has("ignore_index")) x = select(*label == attributes.integer("ignore_index"), 0.0, x);
    Float value = log_probability(x, attributes.flag("from_logits"));  // its sum over the classes is -cost
    if (attributes.has("class_weights")) {
      class_weight = cost.per_column();
      operands.push_back(body.constant(tn::Spec({shape.back()}), attributes.numbers("class_weights")));
      value = value * *class_weight;
    }
    // The sum of the class weights with the distribution without smoothing: the weight of a label is that of its class.
    const Float chosen = is_label ? select(cost.column() == *label, 1.0, 0.0) : share;
    Float counted = sum_per_row(class_weight ? chosen * *class_weight : chosen);
    Float result = -sum_per_row(share * value);
    if (attributes.has("ignore_index")) {
      const int64_t ignored = attributes.integer("ignore_index");
      result = select(*label == ignored, 0.0, result);
      counted = select(*label == ignored, 0.0, counted);
    }
    if (weight) {
      result = select(*weight == 0, 0.0, result * *weight);
      counted = counted * *weight;
    }
    cost.output(result);
    if (by_weights(attributes)) cost.output(counted);
    const std::vector<tn::Tensor> rows = body.pointwise(cost, operands, leading);
    return of_samples(body, rows, shape);
  }

  // The distribution that smoothing makes of a label: `low` for each class, and the rest for the label.
  static Float smoothed(tn::Program& cost, const tn::Int& label, double low, double classes) {
    return select(cost.column() == label, 1 - low * (classes - 1), low);
  }

  // Sums over the positions: rows are costs [samples, ...], and if the costs are to be divided by the sum of the
  // weights of the minibatch, these weights.
  static tn::Tensor of_samples(tn::Builder& body, const std::vector<tn::Tensor>& rows, const tn::Spec& shape) {
    int64_t positions = 1;
    for (int32_t i = 1; i < shape.rank() - 1; ++i) positions *= shape[i].offset;
    if (rows.size() == 1 && positions == 1) return rows[0].view(tn::Spec({shape[0]}));
    std::vector<tn::Tensor> operands;
    for (const tn::Tensor& row : rows) operands.push_back(row.view(tn::Spec({shape[0], positions})));
    tn::Program total;
    const Float costs = total.full();
    const Float sum = positions == 1 ? costs : sum_per_row(costs);
    if (rows.size() == 1) {
      total.output(sum);
    } else {
      // The host divides by the number of samples, which is the number of rows here.
      const Float weights = sum_all(total.full());
      const Float samples = to_float(max_all(total.row()) + 1);
      const Float divisor = select(weights == 0, 1.0, weights);
      total.output(sum * select(weights == 0, 0.0, samples / divisor));
    }
    return body.pointwise(total, operands, 1).front().view(tn::Spec({shape[0]}));
  }

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
