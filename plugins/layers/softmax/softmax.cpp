// Softmax, alone or with a fully connected layer before it. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

namespace {

struct Softmax {
  static void describe(tn::LayerDescription& d) {
    d.type("softmax",
           "Softmax over the last dimension: output_j = exp(x_j - m) / sum_k exp(x_k - m), where m is the largest x_k, "
           "so that nothing overflows (Bridle, \"Probabilistic interpretation of feedforward classification network "
           "outputs\", 1990). With size, x is the input after a fully connected layer of that size, whose weight and "
           "bias are this layer's parameters.");
    d.input("input", "[samples, ..., classes]; with size, [samples, ...] or sparse", TN_PORT_SPARSE);
    d.output("output", "the shape of the input; with size, [samples, size]. Sums to 1 over the last dimension");
    d.attribute(tn::int_attribute("size").at_least(1).doc("outputs of the fully connected layer; none when absent"));
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
    if (connected) {
      planner.output(0, tn::Spec({input[0], planner.attributes().integer("size")}));
    } else {
      planner.elements(0, input.rank() - 1);
      planner.output(0, input);
    }
  }

  static bool expand(tn::Expander& expander) {
    if (!expander.attributes().has("size")) return false;
    const int64_t size = expander.attributes().integer("size");
    const tn_ref connected = expander.layer("fc", {expander.input(0)}, {{"size", tn::int_value(size)}});
    expander.output(0, expander.layer("softmax", {connected}));
    return true;
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    // x [rows, classes] -> y [rows, classes]; dx = y * (dy - sum over the row of dy * y).
    tn::Program forward;
    const tn::Float x = forward.full();
    const tn::Float e = exp(x - max_per_row(x));
    forward.output(e / sum_per_row(e));

    tn::GradientProgram backward(forward);  // from the result alone, so that x need not be saved
    const tn::Float y = backward.result();
    const tn::Float dy = backward.result_gradient();
    backward.output(y * (dy - sum_per_row(dy * y)));

    const tn::Tensor input = body.input(0);
    body.output(0, body.pointwise(forward, {input}, input.spec().rank() - 1, &backward).front());
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.softmax", "0.1.0", "The softmax layer", "Apache-2.0");
  plugin.layer<Softmax>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
