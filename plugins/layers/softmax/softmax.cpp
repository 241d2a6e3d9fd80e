// Softmax, alone or with a fully connected layer before it, and its logarithm. SPDX-License-Identifier: Apache-2.0
#include <string>
#include <tenon/draft/numbers.hpp>
#include <tenon/plugin.hpp>
#include <vector>

namespace {

// Declares the output of a layer that has the shape of its input.
void plan_over_axis(tn::Planner& planner) {
  const tn::Spec input = planner.input(0);
  const int64_t given = planner.attributes().has("axis") ? planner.attributes().integer("axis") : -1;
  planner.axis_of(0, given);
  planner.elements(0, given == -1 ? input.rank() - 1 : 1);
  planner.output(0, input);
}

// Records forward, a program of [rows, classes], over the classes along the axis.
void lower_over_axis(const tn::Attributes& attributes, tn::Builder& body, const tn::Program& forward,
                     const tn::GradientProgram& backward) {
  const tn::Tensor input = body.input(0);
  const int32_t last = input.spec().rank() - 1;
  const int32_t axis = attributes.has("axis") ? input.spec().axis(attributes.integer("axis")) : last;
  const tn::Tensor rows = body.exchange(input, axis, last);
  body.output(0, body.exchange(body.pointwise(forward, {rows}, last, &backward).front(), axis, last));
}

struct Softmax : tn::DeclaresNumbers<Softmax> {
  static void describe(tn::LayerDescription& d) {
    d.type("softmax",
           "Softmax over the last dimension, or over axis: output_j = exp(x_j - m) / sum_k exp(x_k - m), where m is "
           "the largest x_k, "
           "so that nothing overflows (Bridle, \"Probabilistic interpretation of feedforward classification network "
           "outputs\", 1990). With size, x is the input after a fully connected layer of that size, whose weight and "
           "bias are this layer's parameters.");
    d.input("input", "[samples, ..., classes]; with size, [samples, ...] or sparse", TN_PORT_SPARSE);
    d.output("output", "the shape of the input; with size, [samples, size]. Sums to 1 over the axis");
    d.attribute(tn::int_attribute("size").at_least(1).doc("outputs of the fully connected layer; none when absent"));
    d.attribute(tn::int_attribute("axis").doc(
        "the dimension of the classes; negative ones count from the end; the last one when absent. Not with size"));
    d.parameter("weight");
    d.parameter("bias");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    const bool connected = planner.attributes().has("size");
    if (input.rank() < (connected ? 1 : 2))
      throw planner.bad_input(0,
                              connected ? "must have a dimension for the samples" : "must be [samples, ..., classes]");
    if (!connected && input.storage() == TN_CSR) throw planner.bad_input(0, "is sparse, which needs a size");
    if (connected && planner.attributes().has("axis"))
      throw tn::Failure(TN_INVALID, "axis", "cannot be given with size, whose output has one dimension of classes");
    if (connected) {
      planner.output(0, tn::Spec({input[0], planner.attributes().integer("size")}));
    } else {
      plan_over_axis(planner);
    }
  }
  static void numbers(tn::NumberDeclarer& declarer) { declarer.output(0, tn::Numbers::probabilities()); }

  static bool expand(tn::Expander& expander) {
    if (!expander.attributes().has("size")) return false;
    const int64_t size = expander.attributes().integer("size");
    const tn_ref connected = expander.layer("fc", {expander.input(0)}, {{"size", tn::int_value(size)}});
    expander.output(0, expander.layer("softmax", {connected}));
    return true;
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    // x [rows, classes] -> y [rows, classes]; dx = y * (dy - sum over the row of dy * y).
    tn::Program forward;
    const tn::Float x = forward.full();
    const tn::Float e = exp(x - max_per_row(x));
    forward.output(e / sum_per_row(e));

    tn::GradientProgram backward(forward);  // from the result alone, so that x need not be saved
    const tn::Float y = backward.result();
    const tn::Float dy = backward.result_gradient();
    backward.output(y * (dy - sum_per_row(dy * y)));
    lower_over_axis(attributes, body, forward, backward);
  }
};

struct LogSoftmax {
  static void describe(tn::LayerDescription& d) {
    d.type("log_softmax",
           "The logarithm of the softmax over the last dimension, or over axis: output_j = (x_j - m) - log(sum_k "
           "exp(x_k - m)), where m is the largest x_k, so that no probability is rounded to 0 before its logarithm. "
           "(The cost cross_entropy with from_logits does this itself.)");
    d.input("input", "[samples, ..., classes]");
    d.output("output", "the shape of the input; at most 0");
    d.attribute(tn::int_attribute("axis").doc(
        "the dimension of the classes; negative ones count from the end; the last one when absent"));
  }

  static void plan(tn::Planner& planner) {
    if (planner.input(0).rank() < 2) throw planner.bad_input(0, "must be [samples, ..., classes]");
    plan_over_axis(planner);
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    // x [rows, classes] -> y [rows, classes]; dx = dy - exp(y) * sum over the row of dy.
    tn::Program forward;
    const tn::Float x = forward.full();
    const tn::Float below = x - max_per_row(x);
    forward.output(below - log(sum_per_row(exp(below))));

    tn::GradientProgram backward(forward);
    const tn::Float dy = backward.result_gradient();
    backward.output(dy - exp(backward.result()) * sum_per_row(dy));
    lower_over_axis(attributes, body, forward, backward);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.softmax", "0.1.0", "Softmax and its logarithm", "Apache-2.0");
  plugin.layer<Softmax>();
  plugin.layer<LogSoftmax>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
