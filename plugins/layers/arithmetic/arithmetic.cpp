// Arithmetic, element by element. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

#include "broadcast.h"

namespace tenon::arithmetic {

namespace {

using tn::Float;
using tn::GradientProgram;

// Most inputs of a program that folds all of them at once; each takes a register and a load.
constexpr uint32_t kMostInputs = 16;

// ---- several inputs

template <typename Formula>
struct Fold {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    d.input("inputs", "[samples, ...]; at most 16", TN_PORT_VARIADIC);
    d.output("output", "the shape of the inputs, broadcast to each other");
  }

  static void plan(tn::Planner& planner) {
    if (planner.inputs_count() > kMostInputs)
      throw tn::Failure(TN_UNSUPPORTED, "inputs",
                        "are " + std::to_string(planner.inputs_count()) + "; at most " + std::to_string(kMostInputs) +
                            " are offered");
    planner.output(0, broadcast_shape(planner));
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    std::vector<tn::Tensor> inputs{body.input(0)};
    while (const std::optional<tn::Tensor> next = body.optional_input(0, static_cast<uint32_t>(inputs.size())))
      inputs.push_back(*next);
    const Operands operands = broadcast(body, std::move(inputs));
    tn::Program forward;
    Float result = operands.declare(forward, 0);
    for (size_t i = 1; i < operands.values.size(); ++i) result = Formula::join(result, operands.declare(forward, i));
    forward.output(result);
    if (!operands.plain) return body.output(0, body.pointwise(forward, operands.values, operands.leading).front());
    GradientProgram backward(forward);
    Formula::gradients(backward, operands.values.size());
    body.output(0, body.pointwise(forward, operands.values, 1, &backward).front());
  }
};

struct Add {
  static constexpr const char* kType = "add";
  static constexpr const char* kDoc = "The sum of the inputs, element by element.";
  static Float join(const Float& a, const Float& b) { return a + b; }
  static void gradients(GradientProgram& g, size_t count) {
    const Float dy = g.result_gradient();
    for (size_t i = 0; i < count; ++i) g.output(dy);
  }
};

struct Mul {
  static constexpr const char* kType = "mul";
  static constexpr const char* kDoc =
      "The product of the inputs, element by element. The derivative by one is the product of the others, and never a "
      "quotient, so that zeros do no harm.";
  static Float join(const Float& a, const Float& b) { return a * b; }
  // The gradient of input i is dy times the inputs before i times the inputs after i. Both products are accumulated, so
  // that n inputs take about 3n multiplications.
  static void gradients(GradientProgram& g, size_t count) {
    std::vector<Float> behind{g.result_gradient()};  // behind[k] = dy times the last k inputs
    for (size_t k = 1; k < count; ++k) behind.push_back(behind.back() * g.input(count - k));
    std::optional<Float> before;
    for (size_t i = 0; i < count; ++i) {
      g.output(before ? *before * behind[count - 1 - i] : behind[count - 1 - i]);
      if (i + 1 < count) before = before ? *before * g.input(i) : g.input(i);
    }
  }
};

// ---- two inputs

// Formula: join(a, b), and gradients(g), the gradients of a and b where both have the shape of the result; where one is
// broadcast the host derives them.
template <typename Formula>
struct Pair {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    d.input("a", "[samples, ...]");
    d.input("b", "[samples, ...]");
    d.output("output", "the shapes of a and b, broadcast to each other");
  }

  static void plan(tn::Planner& planner) { planner.output(0, broadcast_shape(planner)); }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    const Operands operands = broadcast(body, {body.input(0), body.input(1)});
    tn::Program forward;
    const tn::Float a = operands.declare(forward, 0);
    const tn::Float b = operands.declare(forward, 1);
    forward.output(Formula::join(a, b));
    if (!operands.plain) return body.output(0, body.pointwise(forward, operands.values, operands.leading).front());
    GradientProgram backward(forward);
    Formula::gradients(backward);
    body.output(0, body.pointwise(forward, operands.values, 1, &backward).front());
  }
};

struct Sub {
  static constexpr const char* kType = "sub";
  static constexpr const char* kDoc = "The difference a - b, element by element.";
  static Float join(const Float& a, const Float& b) { return a - b; }
  static void gradients(GradientProgram& g) {
    const Float dy = g.result_gradient();
    g.output(dy);
    g.output(-dy);
  }
};

struct Div {
  static constexpr const char* kType = "div";
  static constexpr const char* kDoc =
      "The quotient a / b, element by element, with derivatives 1 / b and -output / b. Where b is 0 it is infinite or "
      "not a number.";
  static Float join(const Float& a, const Float& b) { return a / b; }
  static void gradients(GradientProgram& g) {
    const Float share = g.result_gradient() / g.input(1);
    g.output(share);
    g.output(-(share * g.result()));
  }
};

struct Maximum {
  static constexpr const char* kType = "maximum";
  static constexpr const char* kDoc =
      "The greater of a and b, element by element; the derivative goes to that one, and half of it to each where they "
      "are equal.";
  static Float join(const Float& a, const Float& b) { return max(a, b); }
  static void gradients(GradientProgram& g) {
    const Float a = g.input(0), b = g.input(1), dy = g.result_gradient();
    const Float share = select(a > b, 1.0, select(a == b, 0.5, 0.0));
    g.output(dy * share);
    g.output(dy - dy * share);
  }
};

struct Minimum {
  static constexpr const char* kType = "minimum";
  static constexpr const char* kDoc =
      "The smaller of a and b, element by element; the derivative goes to that one, and half of it to each where they "
      "are equal.";
  static Float join(const Float& a, const Float& b) { return min(a, b); }
  static void gradients(GradientProgram& g) {
    const Float a = g.input(0), b = g.input(1), dy = g.result_gradient();
    const Float share = select(a < b, 1.0, select(a == b, 0.5, 0.0));
    g.output(dy * share);
    g.output(dy - dy * share);
  }
};

struct Pow {
  static constexpr const char* kType = "pow";
  static constexpr const char* kDoc =
      "a to the power of b, element by element, with derivatives b a^(b - 1) and a^b log(a), the latter 0 where a is "
      "0. "
      "Not a number where a is below 0 unless b is whole.";
  static Float join(const Float& a, const Float& b) { return pow(a, b); }
  static void gradients(GradientProgram& g) {
    const Float a = g.input(0), b = g.input(1), dy = g.result_gradient();
    g.output(dy * (b * pow(a, b - 1)));
    g.output(dy * select(a == 0, 0.0, g.result() * log(a)));
  }
};

// ---- a x + b

struct ScaleShift {
  static void describe(tn::LayerDescription& d) {
    d.type("scale_shift",
           "output = scale * x + shift. The two are constants, or with learnable they are parameters, one number of "
           "each for every feature, which is a place along the last dimension; the attributes are then their first "
           "values.");
    d.input("input", "[samples, ...]; with learnable, [samples, ..., features]");
    d.output("output", "the shape of the input");
    d.attribute(tn::float_attribute("scale", 1).doc("factor"));
    d.attribute(tn::float_attribute("shift", 0).doc("what is added"));
    d.attribute(tn::bool_attribute("learnable", false).doc("train scale and shift, for each feature its own"));
    d.parameter("scale");
    d.parameter("shift");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0).as(TN_COMPUTE);
    const tn::Attributes attributes = planner.attributes();
    const bool learnable = attributes.flag("learnable");
    if (input.rank() < (learnable ? 2 : 1))
      throw planner.bad_input(0,
                              learnable ? "must be [samples, ..., features]" : "must have a dimension for the samples");
    planner.output(0, input);
    if (!learnable) return;
    const tn::Spec features({planner.elements(0, input.rank() - 1)});
    planner.parameter("scale", features, tn::constant_initializer(attributes.number("scale")));
    planner.parameter("shift", features, tn::constant_initializer(attributes.number("shift")));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    tn::Program forward;
    const Float x = forward.full();
    if (attributes.flag("learnable")) {
      const Float scale = forward.per_column();
      forward.output(scale * x + forward.per_column());
      GradientProgram backward(forward);
      const Float dy = backward.result_gradient();
      backward.output(dy * backward.input(1));
      backward.output(sum_per_column(dy * backward.input(0)));
      backward.output(sum_per_column(dy));
      const std::vector<tn::Tensor> operands{input, body.parameter(0), body.parameter(1)};
      return body.output(0, body.pointwise(forward, operands, input.spec().rank() - 1, &backward).front());
    }
    const double scale = attributes.number("scale");
    forward.output(scale * x + attributes.number("shift"));
    GradientProgram backward(forward);
    backward.output(scale * backward.result_gradient());
    body.output(0, body.pointwise(forward, {input}, 1, &backward).front());
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.arithmetic", "0.1.0", "Arithmetic, element by element", "Apache-2.0");
  plugin.layer<Fold<Add>>();
  plugin.layer<Pair<Sub>>();
  plugin.layer<Fold<Mul>>();
  plugin.layer<Pair<Div>>();
  plugin.layer<Pair<Maximum>>();
  plugin.layer<Pair<Minimum>>();
  plugin.layer<Pair<Pow>>();
  plugin.layer<ScaleShift>();
  add_comparisons(plugin);
  add_expand(plugin);
  add_formula(plugin);
  add_multiplex(plugin);
}

}  // namespace

}  // namespace tenon::arithmetic

const tn_plugin* tenon_plugin() { return tn::entry<tenon::arithmetic::describe>(); }
