// Activations of several features, or with parameters. SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "elementwise.h"

namespace tenon::activations {

namespace {

struct Prelu {
  static void describe(tn::LayerDescription& d) {
    d.type("prelu",
           "Parametric rectified linear unit: output = x for x > 0, else slope x, where slope is a parameter with one "
           "number for each feature, a place along the last dimension (He et al., \"Delving deep into rectifiers\", "
           "2015). The derivative at 0 is the slope.");
    d.input("input", "[samples, ..., features]");
    d.output("output", "the shape of the input");
    d.attribute(tn::float_attribute("slope", 0.25).doc("first value of the slopes"));
    d.attribute(tn::bool_attribute("shared", false).doc("one slope for all features"));
    d.parameter("slope");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() < 2) throw planner.bad_input(0, "must be [samples, ..., features]");
    const int64_t features = planner.elements(0, input.rank() - 1);
    planner.parameter("slope", tn::Spec({planner.attributes().flag("shared") ? 1 : features}),
                      tn::constant_initializer(planner.attributes().number("slope")));
    planner.output(0, input.as(TN_COMPUTE));
  }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    tn::Program program;
    const Float x = program.full();
    const Float slope = attributes.flag("shared") ? program.scalar() : program.per_column();
    program.output(select(x > 0, x, slope * x));
    body.output(0, body.pointwise(program, {input, body.parameter(0)}, input.spec().rank() - 1).front());
  }
};

struct Glu {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "glu",
        "Gated linear unit: output = a gate(b), where a and b are the first and the second half of the features, the "
        "last dimension (Dauphin et al., \"Language modeling with gated convolutional networks\", 2017). Other gates "
        "are those of Shazeer, \"GLU variants improve transformer\", 2020: with silu it is SwiGLU, with gelu GEGLU, "
        "with none the bilinear unit.");
    d.input("input", "[samples, ..., 2 features]");
    d.output("output", "[samples, ..., features]");
    d.attribute(tn::string_attribute("gate", "sigmoid")
                    .one_of({"sigmoid", "silu", "gelu", "relu", "tanh", "none"})
                    .doc("the function of the second half"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() < 2) throw planner.bad_input(0, "must be [samples, ..., 2 features]");
    planner.elements(0, 1);
    const int64_t features = planner.elements(0, input.rank() - 1);
    if (features % 2 != 0) throw planner.bad_input(0, "must have an even number of features");
    tn::Spec output = input.leading(input.rank() - 1).as(TN_COMPUTE);
    output.push_back(features / 2);
    planner.output(0, output);
  }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const int32_t last = input.spec().rank() - 1;
    const int64_t half = input.spec().back().offset / 2;
    tn::Program program;
    const Float a = program.full();
    program.output(a * gate(attributes.text("gate"), program.full()));
    const std::vector<tn::Tensor> halves{body.slice(input, last, 0, half), body.slice(input, last, half, half)};
    body.output(0, body.pointwise(program, halves, last).front());
  }

 private:
  static Float gate(const std::string& name, const Float& b) {
    if (name == "sigmoid") return logistic(b);
    if (name == "silu") return b * logistic(b);
    if (name == "gelu") return b * (0.5 + 0.5 * erf(0.70710678118654752440 * b));
    if (name == "relu") return max(b, 0);
    if (name == "tanh") return tanh(b);
    return b;
  }
};

struct Maxout {
  static void describe(tn::LayerDescription& d) {
    d.type("maxout",
           "The largest of `pieces` neighbouring features (Goodfellow et al., \"Maxout networks\", 2013): output_k is "
           "the largest of the features k pieces to (k + 1) pieces - 1. Equals share the derivative.");
    d.input("input", "[samples, ..., features]");
    d.output("output", "[samples, ..., features / pieces]");
    d.attribute(tn::int_attribute("pieces").required().at_least(1).doc("a divisor of the number of features"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() < 2) throw planner.bad_input(0, "must be [samples, ..., features]");
    if (input.rank() == TN_MAX_RANK) throw planner.bad_input(0, "has too many dimensions", TN_UNSUPPORTED);
    planner.elements(0, 1);
    const int64_t features = planner.elements(0, input.rank() - 1), pieces = planner.attributes().integer("pieces");
    if (features % pieces != 0)
      throw planner.bad_input(0, "has a number of features that " + std::to_string(pieces) + " pieces do not divide");
    tn::Spec output = input.leading(input.rank() - 1).as(TN_COMPUTE);
    output.push_back(features / pieces);
    planner.output(0, output);
  }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const int64_t pieces = attributes.integer("pieces");
    tn::Spec groups = input.spec().leading(input.spec().rank() - 1);
    groups.push_back(input.spec().back().offset / pieces);
    groups.push_back(pieces);
    tn::Program forward;
    forward.output(max_per_row(forward.full()));
    GradientProgram backward(forward);
    const tn::Logical reached = backward.input() == backward.result();
    backward.output(select(reached, backward.result_gradient() / sum_per_row(to_float(reached)), 0.0));
    body.output(0, body.pointwise(forward, {input.view(groups)}, groups.rank() - 1, &backward).front());
  }
};

}  // namespace

void add_gated(tn::Plugin& plugin) {
  plugin.layer<Prelu>();
  plugin.layer<Glu>();
  plugin.layer<Maxout>();
}

}  // namespace tenon::activations
