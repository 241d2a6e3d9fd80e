// Elementary mathematics of one element, as layers. SPDX-License-Identifier: Apache-2.0
#include "elementwise.h"

namespace tenon::activations {

namespace {

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

struct Log1p : Plain {
  static constexpr const char* kType = "log1p";
  static constexpr const char* kDoc = "output = log(1 + x), exact for small x, with derivative 1 / (1 + x).";
  static Float value(const Float& x, const Attributes&) { return log1p(x); }
  static Float gradient(GradientProgram& g, const Attributes&) { return g.result_gradient() / (1 + g.input()); }
};

struct Expm1 : Plain {
  static constexpr const char* kType = "expm1";
  static constexpr const char* kDoc = "output = exp(x) - 1, exact for small x, with derivative output + 1.";
  static Float value(const Float& x, const Attributes&) { return expm1(x); }
  static Float gradient(GradientProgram& g, const Attributes&) { return g.result_gradient() * (g.result() + 1); }
};

struct Sin : Plain {
  static constexpr const char* kType = "sin";
  static constexpr const char* kDoc = "Sine of x in radians, with derivative cos(x).";
  static Float value(const Float& x, const Attributes&) { return sin(x); }
  static Float gradient(GradientProgram& g, const Attributes&) { return g.result_gradient() * cos(g.input()); }
};

struct Cos : Plain {
  static constexpr const char* kType = "cos";
  static constexpr const char* kDoc = "Cosine of x in radians, with derivative -sin(x).";
  static Float value(const Float& x, const Attributes&) { return cos(x); }
  static Float gradient(GradientProgram& g, const Attributes&) { return -(g.result_gradient() * sin(g.input())); }
};

struct Floor : Plain {
  static constexpr const char* kType = "floor";
  static constexpr const char* kDoc = "The greatest whole number that is not above x; the derivative is 0.";
  static Float value(const Float& x, const Attributes&) { return floor(x); }
  static Float gradient(GradientProgram& g, const Attributes&) { return 0 * g.result_gradient(); }
};

struct Round : Plain {
  static constexpr const char* kType = "round";
  static constexpr const char* kDoc =
      "The nearest whole number, the even one of two that are equally near; the derivative is 0.";
  static Float value(const Float& x, const Attributes&) { return round(x); }
  static Float gradient(GradientProgram& g, const Attributes&) { return 0 * g.result_gradient(); }
};

struct Sign : Plain {
  static constexpr const char* kType = "sign";
  static constexpr const char* kDoc = "-1, 0 or 1; the derivative is 0.";
  static Float value(const Float& x, const Attributes&) { return sign(x); }
  static Float gradient(GradientProgram& g, const Attributes&) { return 0 * g.result_gradient(); }
};

struct Erf : Plain {
  static constexpr const char* kType = "erf";
  static constexpr const char* kDoc = "The error function, with derivative 2 / sqrt(pi) exp(-x^2).";
  static Float value(const Float& x, const Attributes&) { return erf(x); }
  static Float gradient(GradientProgram& g, const Attributes&) {
    const Float x = g.input();
    return g.result_gradient() * (1.12837916709551257390 * exp(-(x * x)));  // 2 / sqrt(pi)
  }
};

struct Power : Unchecked {
  static constexpr const char* kType = "power";
  static constexpr const char* kDoc =
      "output = x^exponent, with derivative exponent x^(exponent - 1). Not a number for x below 0 unless the exponent "
      "is whole.";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::float_attribute("exponent").required().doc("any number"));
  }
  static Float value(const Float& x, const Attributes& a) { return pow(x, a.number("exponent")); }
  static Float gradient(GradientProgram& g, const Attributes& a) {
    const double exponent = a.number("exponent");
    return g.result_gradient() * (exponent * pow(g.input(), exponent - 1));
  }
};

}  // namespace

void add_mathematics(tn::Plugin& plugin) {
  plugin.layer<Elementwise<Exp>>();
  plugin.layer<Elementwise<Log>>();
  plugin.layer<Elementwise<Square>>();
  plugin.layer<Elementwise<Sqrt>>();
  plugin.layer<Elementwise<Abs>>();
  plugin.layer<Elementwise<Reciprocal>>();
  plugin.layer<Elementwise<Log1p>>();
  plugin.layer<Elementwise<Expm1>>();
  plugin.layer<Elementwise<Sin>>();
  plugin.layer<Elementwise<Cos>>();
  plugin.layer<Elementwise<Floor>>();
  plugin.layer<Elementwise<Round>>();
  plugin.layer<Elementwise<Sign>>();
  plugin.layer<Elementwise<Erf>>();
  plugin.layer<Elementwise<Power>>();
}

}  // namespace tenon::activations
