// Functions of one element: activations and elementary mathematics. Each has its own derivative, computed from the
// result where that is enough, so that the input need not be saved. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <tenon/plugin.hpp>

namespace {

using tn::Attributes;
using tn::Float;
using tn::GradientProgram;

// A layer made of a formula: value(x), and gradient(g), the gradient of x, where g.input() is x, g.result() is value(x)
// and g.result_gradient() is the gradient of the result. Values that the gradient does not read are not saved.
template <typename Formula>
struct Elementwise {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    d.input("input", "any shape that begins with the samples");
    d.output("output", "the shape of the input");
    Formula::declare(d);
  }

  static void plan(tn::Planner& planner) {
    if (planner.input(0).rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
    planner.output(0, planner.input(0).as(TN_COMPUTE));
  }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    tn::Program forward;
    forward.output(Formula::value(forward.full(), attributes));
    GradientProgram backward(forward);
    backward.output(Formula::gradient(backward, attributes));
    body.output(0, body.pointwise(forward, {body.input(0)}, 1, &backward).front());
  }
};

struct Plain {
  static void declare(tn::LayerDescription&) {}
};

Float logistic(const Float& x) { return 1 / (1 + exp(-x)); }

// ---- activations

struct Relu : Plain {
  static constexpr const char* kType = "relu";
  static constexpr const char* kDoc =
      "Rectified linear unit: output = max(x, 0), with derivative 0 at 0 (Nair and Hinton, \"Rectified linear units "
      "improve restricted Boltzmann machines\", 2010).";
  static Float value(const Float& x, const Attributes&) { return max(x, 0); }
  static Float gradient(GradientProgram& g, const Attributes&) {
    return select(g.result() > 0, g.result_gradient(), 0.0);
  }
};

struct LeakyRelu {
  static constexpr const char* kType = "leaky_relu";
  static constexpr const char* kDoc =
      "Leaky rectified linear unit: output = x for x > 0, else slope * x (Maas, Hannun and Ng, \"Rectifier "
      "nonlinearities improve neural network acoustic models\", 2013). The derivative at 0 is the slope.";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::float_attribute("slope", 0.01).at_least(0).doc("factor for x below 0"));
  }
  static Float value(const Float& x, const Attributes& a) { return select(x > 0, x, a.number("slope") * x); }
  static Float gradient(GradientProgram& g, const Attributes& a) {
    const Float dy = g.result_gradient();
    return select(g.result() > 0, dy, a.number("slope") * dy);
  }
};

struct Elu {
  static constexpr const char* kType = "elu";
  static constexpr const char* kDoc =
      "Exponential linear unit: output = x for x > 0, else alpha * (exp(x) - 1), with derivative 1 or output + alpha "
      "(Clevert, Unterthiner and Hochreiter, \"Fast and accurate deep network learning by exponential linear units "
      "(ELUs)\", 2016).";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::float_attribute("alpha", 1).at_least(0).doc("the output tends to -alpha for x far below 0"));
  }
  static Float value(const Float& x, const Attributes& a) { return select(x > 0, x, a.number("alpha") * expm1(x)); }
  static Float gradient(GradientProgram& g, const Attributes& a) {
    const Float y = g.result();
    const Float dy = g.result_gradient();
    return select(y > 0, dy, dy * (y + a.number("alpha")));
  }
};

struct Sigmoid : Plain {
  static constexpr const char* kType = "sigmoid";
  static constexpr const char* kDoc =
      "Logistic function: output = 1 / (1 + exp(-x)), with derivative output * (1 - output).";
  static Float value(const Float& x, const Attributes&) { return logistic(x); }
  static Float gradient(GradientProgram& g, const Attributes&) {
    const Float y = g.result();
    return g.result_gradient() * y * (1 - y);
  }
};

struct Tanh : Plain {
  static constexpr const char* kType = "tanh";
  static constexpr const char* kDoc = "Hyperbolic tangent: output = tanh(x), with derivative 1 - output * output.";
  static Float value(const Float& x, const Attributes&) { return tanh(x); }
  static Float gradient(GradientProgram& g, const Attributes&) {
    const Float y = g.result();
    return g.result_gradient() * (1 - y * y);
  }
};

struct Softplus : Plain {
  static constexpr const char* kType = "softplus";
  static constexpr const char* kDoc =
      "Smooth rectifier: output = log(1 + exp(x)), computed as max(x, 0) + log(1 + exp(-|x|)) so that nothing "
      "overflows; the derivative is 1 - exp(-output) (Dugas et al., \"Incorporating second-order functional knowledge "
      "for better option pricing\", 2001).";
  static Float value(const Float& x, const Attributes&) { return max(x, 0) + log1p(exp(-abs(x))); }
  static Float gradient(GradientProgram& g, const Attributes&) { return -(g.result_gradient() * expm1(-g.result())); }
};

struct Silu : Plain {
  static constexpr const char* kType = "silu";
  static constexpr const char* kDoc =
      "Sigmoid-weighted linear unit: output = x / (1 + exp(-x)), with derivative s + x s (1 - s) where s = 1 / (1 + "
      "exp(-x)) (Elfwing, Uchibe and Doya, \"Sigmoid-weighted linear units for neural network function approximation "
      "in reinforcement learning\", 2018).";
  static Float value(const Float& x, const Attributes&) { return x / (1 + exp(-x)); }
  static Float gradient(GradientProgram& g, const Attributes&) {
    const Float x = g.input();
    const Float s = logistic(x);
    return g.result_gradient() * (s + x * s * (1 - s));
  }
};

struct Gelu {
  static constexpr const char* kType = "gelu";
  static constexpr const char* kDoc =
      "Gaussian error linear unit: output = x P(x), where P is the distribution function of the standard normal: "
      "exact, P(x) = (1 + erf(x / sqrt(2))) / 2, or with approximation = \"tanh\", P(x) = (1 + tanh(sqrt(2 / pi) (x + "
      "0.044715 x^3))) / 2 (Hendrycks and Gimpel, \"Gaussian error linear units (GELUs)\", 2016).";
  static constexpr double kRootHalf = 0.70710678118654752440;   // sqrt(1/2)
  static constexpr double kDensity = 0.39894228040143267794;    // 1 / sqrt(2 pi)
  static constexpr double kTanhScale = 0.79788456080286535588;  // sqrt(2 / pi)
  static constexpr double kTanhCubic = kTanhScale * 0.044715;

  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::string_attribute("approximation", "none")
                    .one_of({"none", "tanh"})
                    .doc("which form: none is exact, tanh is the approximation of the paper"));
  }
  static bool approximate(const Attributes& a) { return std::string(a.text("approximation")) == "tanh"; }
  // P in the approximation. (1 + tanh(z)) / 2 is computed as the logistic function of 2 z, which is precise where tanh
  // is nearly -1.
  static Float approximate_share(const Float& x, const Float& square) {
    return logistic(2 * x * (kTanhScale + kTanhCubic * square));
  }

  static Float value(const Float& x, const Attributes& a) {
    if (approximate(a)) return x * approximate_share(x, x * x);
    const Float half = 0.5 * x;
    return half + half * erf(kRootHalf * x);
  }
  static Float gradient(GradientProgram& g, const Attributes& a) {
    const Float x = g.input();
    const Float dy = g.result_gradient();
    const Float square = min(x * x, 1e30);  // finite, since it is multiplied by 0 for large x
    if (!approximate(a)) return dy * (0.5 + 0.5 * erf(kRootHalf * x) + kDensity * x * exp(-0.5 * square));
    const Float p = approximate_share(x, square);
    const Float slope = kTanhScale + 3 * kTanhCubic * square;
    return dy * (p + x * p * (1 - p) * (2 * slope));
  }
};

// ---- elementary mathematics

struct Exp : Plain {
  static constexpr const char* kType = "exp";
  static constexpr const char* kDoc = "Exponential function: output = exp(x), which is its own derivative.";
  static Float value(const Float& x, const Attributes&) { return exp(x); }
  static Float gradient(GradientProgram& g, const Attributes&) { return g.result_gradient() * g.result(); }
};

struct Log : Plain {
  static constexpr const char* kType = "log";
  static constexpr const char* kDoc =
      "Natural logarithm: output = log(x), with derivative 1 / x; minus infinity at 0, not a number below.";
  static Float value(const Float& x, const Attributes&) { return log(x); }
  static Float gradient(GradientProgram& g, const Attributes&) { return g.result_gradient() / g.input(); }
};

struct Square : Plain {
  static constexpr const char* kType = "square";
  static constexpr const char* kDoc = "Square: output = x * x, with derivative 2 x.";
  static Float value(const Float& x, const Attributes&) { return x * x; }
  static Float gradient(GradientProgram& g, const Attributes&) { return 2 * g.result_gradient() * g.input(); }
};

struct Sqrt : Plain {
  static constexpr const char* kType = "sqrt";
  static constexpr const char* kDoc =
      "Square root: output = sqrt(x), with derivative 1 / (2 output), infinite at 0; not a number below 0.";
  static Float value(const Float& x, const Attributes&) { return sqrt(x); }
  static Float gradient(GradientProgram& g, const Attributes&) { return 0.5 * g.result_gradient() / g.result(); }
};

struct Abs : Plain {
  static constexpr const char* kType = "abs";
  static constexpr const char* kDoc = "Absolute value: output = |x|, with derivative -1, 0 or 1 (0 at 0).";
  static Float value(const Float& x, const Attributes&) { return abs(x); }
  static Float gradient(GradientProgram& g, const Attributes&) {
    const Float x = g.input();
    const Float dy = g.result_gradient();
    return select(x > 0, dy, select(x < 0, -dy, 0.0));
  }
};

struct Reciprocal : Plain {
  static constexpr const char* kType = "reciprocal";
  static constexpr const char* kDoc = "Reciprocal: output = 1 / x, with derivative -output * output; infinite at 0.";
  static Float value(const Float& x, const Attributes&) { return 1 / x; }
  static Float gradient(GradientProgram& g, const Attributes&) {
    const Float y = g.result();
    return -(g.result_gradient() * (y * y));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.activations", "0.1.0", "Functions of one element", "Apache-2.0");
  plugin.layer<Elementwise<Relu>>();
  plugin.layer<Elementwise<LeakyRelu>>();
  plugin.layer<Elementwise<Elu>>();
  plugin.layer<Elementwise<Sigmoid>>();
  plugin.layer<Elementwise<Tanh>>();
  plugin.layer<Elementwise<Softplus>>();
  plugin.layer<Elementwise<Silu>>();
  plugin.layer<Elementwise<Gelu>>();
  plugin.layer<Elementwise<Exp>>();
  plugin.layer<Elementwise<Log>>();
  plugin.layer<Elementwise<Square>>();
  plugin.layer<Elementwise<Sqrt>>();
  plugin.layer<Elementwise<Abs>>();
  plugin.layer<Elementwise<Reciprocal>>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
