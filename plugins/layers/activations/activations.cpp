// Activations: functions of one element whose derivative is known from their result. SPDX-License-Identifier:
// Apache-2.0
#include <tenon/plugin.hpp>

namespace {

using tn::Float;

// A layer from a formula: `value` of x, and `gradient` from the result y and the gradient dy of it, so that x need
// not be saved.
template <typename Formula>
struct Activation {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    d.input("input", "any shape that begins with the samples");
    d.output("output", "the shape of the input");
    Formula::declare(d);
  }

  static void plan(tn::Planner& planner) {
    if (planner.input(0).rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
    planner.output(0, planner.input(0));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    tn::Program forward;
    forward.output(Formula::value(forward.full(), attributes));
    tn::GradientProgram backward(forward);
    backward.output(Formula::gradient(backward.result(), backward.result_gradient(), attributes));
    body.output(0, body.pointwise(forward, {body.input(0)}, 1, &backward).front());
  }
};

struct Plain {
  static void declare(tn::LayerDescription&) {}
};

struct Relu : Plain {
  static constexpr const char* kType = "relu";
  static constexpr const char* kDoc =
      "Rectified linear unit: output = max(x, 0), with derivative 0 at 0 (Nair and Hinton, \"Rectified linear units "
      "improve restricted Boltzmann machines\", 2010).";
  static Float value(const Float& x, const tn::Attributes&) { return max(x, 0); }
  static Float gradient(const Float& y, const Float& dy, const tn::Attributes&) { return select(y > 0, dy, 0.0); }
};

struct LeakyRelu {
  static constexpr const char* kType = "leaky_relu";
  static constexpr const char* kDoc =
      "Leaky rectified linear unit: output = x for x > 0, else slope * x (Maas, Hannun and Ng, \"Rectifier "
      "nonlinearities improve neural network acoustic models\", 2013). The derivative at 0 is the slope.";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::float_attribute("slope", 0.01).at_least(0).doc("factor for x below 0"));
  }
  static Float value(const Float& x, const tn::Attributes& a) { return select(x > 0, x, a.number("slope") * x); }
  static Float gradient(const Float& y, const Float& dy, const tn::Attributes& a) {
    return select(y > 0, dy, a.number("slope") * dy);
  }
};

struct Sigmoid : Plain {
  static constexpr const char* kType = "sigmoid";
  static constexpr const char* kDoc =
      "Logistic function: output = 1 / (1 + exp(-x)), with derivative output * (1 - output).";
  static Float value(const Float& x, const tn::Attributes&) { return 1 / (1 + exp(-x)); }
  static Float gradient(const Float& y, const Float& dy, const tn::Attributes&) { return dy * y * (1 - y); }
};

struct Tanh : Plain {
  static constexpr const char* kType = "tanh";
  static constexpr const char* kDoc = "Hyperbolic tangent: output = tanh(x), with derivative 1 - output * output.";
  static Float value(const Float& x, const tn::Attributes&) { return tanh(x); }
  static Float gradient(const Float& y, const Float& dy, const tn::Attributes&) { return dy * (1 - y * y); }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.activations", "0.1.0", "Activations of one element", "Apache-2.0");
  plugin.layer<Activation<Relu>>();
  plugin.layer<Activation<LeakyRelu>>();
  plugin.layer<Activation<Sigmoid>>();
  plugin.layer<Activation<Tanh>>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
