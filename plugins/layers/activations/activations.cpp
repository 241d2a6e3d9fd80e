// Functions of one element: activations and elementary mathematics. Each has its own derivative, computed from the
// result where that is enough, so that the input need not be saved. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <tenon/plugin.hpp>

#include "elementwise.h"

namespace tenon::activations {

namespace {

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

struct LeakyRelu : Unchecked {
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

struct Elu : Unchecked {
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
  static void hold(tn::NumberDeclarer& declarer) { declarer.output(0, tn::Numbers::probabilities()); }
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
      "in reinforcement learning\", 2018). Other names: swish.";
  static Float value(const Float& x, const Attributes&) { return x / (1 + exp(-x)); }
  static Float gradient(GradientProgram& g, const Attributes&) {
    const Float x = g.input();
    const Float s = logistic(x);
    return g.result_gradient() * (s + x * s * (1 - s));
  }
};

struct Gelu : Unchecked {
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

struct Mish : Plain {
  static constexpr const char* kType = "mish";
  static constexpr const char* kDoc =
      "output = x tanh(softplus(x)), with derivative t + x s (1 - t^2) where t = tanh(softplus(x)) and s = 1 / (1 + "
      "exp(-x)) (Misra, \"Mish: a self regularized non-monotonic activation function\", 2020).";
  static Float value(const Float& x, const Attributes&) { return x * tanh(max(x, 0) + log1p(exp(-abs(x)))); }
  static Float gradient(GradientProgram& g, const Attributes&) {
    const Float x = g.input();
    const Float t = tanh(max(x, 0) + log1p(exp(-abs(x))));
    return g.result_gradient() * (t + x * logistic(x) * (1 - t * t));
  }
};

struct Selu : Plain {
  static constexpr const char* kType = "selu";
  static constexpr const char* kDoc =
      "Scaled exponential linear unit: output = 1.0507 x for x > 0, else 1.0507 * 1.6733 * (exp(x) - 1), constants "
      "that "
      "keep mean 0 and variance 1 from layer to layer (Klambauer et al., \"Self-normalizing neural networks\", 2017).";
  static constexpr double kScale = 1.0507009873554804934;
  static constexpr double kScaledAlpha = kScale * 1.6732632423543772848;
  static Float value(const Float& x, const Attributes&) { return select(x > 0, kScale * x, kScaledAlpha * expm1(x)); }
  static Float gradient(GradientProgram& g, const Attributes&) {
    const Float y = g.result();
    return g.result_gradient() * select(y > 0, kScale, y + kScaledAlpha);
  }
};

struct Celu : Unbounded {
  static constexpr const char* kType = "celu";
  static constexpr const char* kDoc =
      "Continuously differentiable exponential linear unit: output = x for x > 0, else alpha * (exp(x / alpha) - 1), "
      "with derivative 1 or 1 + output / alpha (Barron, \"Continuously differentiable exponential linear units\", "
      "2017).";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::float_attribute("alpha", 1).doc("the output tends to -alpha for x far below 0"));
  }
  static void check(const Attributes& a) { require_above_zero(a, "alpha"); }
  static Float value(const Float& x, const Attributes& a) {
    const double alpha = a.number("alpha");
    return select(x > 0, x, alpha * expm1(x * (1 / alpha)));
  }
  static Float gradient(GradientProgram& g, const Attributes& a) {
    const Float y = g.result();
    return g.result_gradient() * select(y > 0, 1.0, 1 + y * (1 / a.number("alpha")));
  }
};

struct Softsign : Plain {
  static constexpr const char* kType = "softsign";
  static constexpr const char* kDoc = "output = x / (1 + |x|), with derivative (1 - |output|)^2.";
  static Float value(const Float& x, const Attributes&) { return x / (1 + abs(x)); }
  static Float gradient(GradientProgram& g, const Attributes&) {
    const Float rest = 1 / (1 + abs(g.input()));
    return g.result_gradient() * (rest * rest);
  }
};

struct LogSigmoid : Plain {
  static constexpr const char* kType = "log_sigmoid";
  static constexpr const char* kDoc =
      "Logarithm of the logistic function: output = -log(1 + exp(-x)), computed as min(x, 0) - log(1 + exp(-|x|)) so "
      "that nothing overflows; the derivative is 1 - exp(output).";
  static Float value(const Float& x, const Attributes&) { return min(x, 0) - log1p(exp(-abs(x))); }
  static Float gradient(GradientProgram& g, const Attributes&) { return -(g.result_gradient() * expm1(g.result())); }
};

struct ScaledTanh : Unbounded {
  static constexpr const char* kType = "scaled_tanh";
  static constexpr const char* kDoc =
      "output = height * tanh(slope * x), with derivative slope * (height - output^2 / height). The first values of "
      "the "
      "attributes are those of LeCun et al., \"Efficient backprop\", 1998.";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::float_attribute("height", 1.7159).doc("the output is between -height and height"));
    d.attribute(tn::float_attribute("slope", 0.66666666666666667).doc("factor on x"));
  }
  static void check(const Attributes& a) { require_above_zero(a, "height"); }
  static Float value(const Float& x, const Attributes& a) { return a.number("height") * tanh(a.number("slope") * x); }
  static Float gradient(GradientProgram& g, const Attributes& a) {
    const Float t = g.result() * (1 / a.number("height"));
    return g.result_gradient() * (a.number("height") * a.number("slope") * (1 - t * t));
  }
};

struct TanhShrink : Plain {
  static constexpr const char* kType = "tanh_shrink";
  static constexpr const char* kDoc = "output = x - tanh(x), with derivative tanh(x)^2.";
  static Float value(const Float& x, const Attributes&) { return x - tanh(x); }
  static Float gradient(GradientProgram& g, const Attributes&) {
    const Float t = tanh(g.input());
    return g.result_gradient() * (t * t);
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
  plugin.layer<Elementwise<Mish>>();
  plugin.layer<Elementwise<Selu>>();
  plugin.layer<Elementwise<Celu>>();
  plugin.layer<Elementwise<Softsign>>();
  plugin.layer<Elementwise<LogSigmoid>>();
  plugin.layer<Elementwise<ScaledTanh>>();
  plugin.layer<Elementwise<TanhShrink>>();
  add_gated(plugin);
  add_piecewise(plugin);
  add_mathematics(plugin);
}

}  // namespace

}  // namespace tenon::activations

const tn_plugin* tenon_plugin() { return tn::entry<tenon::activations::describe>(); }
