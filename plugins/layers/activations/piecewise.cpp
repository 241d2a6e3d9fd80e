// Activations of straight pieces. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>

#include "elementwise.h"

namespace tenon::activations {

namespace {

// x within bounds; the derivative is 1 between them, and 0 at and outside of them.
Float within(const Float& x, double low, double high) { return min(max(x, low), high); }
Float pass_between(GradientProgram& g, double low, double high) {
  const Float x = g.input();
  return select(x > low && x < high, g.result_gradient(), 0.0);
}

struct Relu6 : Plain {
  static constexpr const char* kType = "relu6";
  static constexpr const char* kDoc =
      "output = min(max(x, 0), 6), with derivative 0 at both bounds (Krizhevsky, \"Convolutional deep belief networks "
      "on "
      "CIFAR-10\", 2010).";
  static Float value(const Float& x, const Attributes&) { return within(x, 0, 6); }
  static Float gradient(GradientProgram& g, const Attributes&) { return pass_between(g, 0, 6); }
};

struct HardTanh : Plain {
  static constexpr const char* kType = "hard_tanh";
  static constexpr const char* kDoc =
      "output = min(max(x, -1), 1), with derivative 0 at both bounds; `clip` has other bounds.";
  static Float value(const Float& x, const Attributes&) { return within(x, -1, 1); }
  static Float gradient(GradientProgram& g, const Attributes&) { return pass_between(g, -1, 1); }
};

struct Clip {
  static constexpr const char* kType = "clip";
  static constexpr const char* kDoc =
      "output = min(max(x, low), high), with derivative 0 at both bounds. One of them may be left out. Other names: "
      "clamp.";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::float_attribute("low").doc("the smallest value; without it there is none"));
    d.attribute(tn::float_attribute("high").doc("the largest value; without it there is none"));
  }
  static void check(const Attributes& a) {
    if (!a.has("low") && !a.has("high")) throw tn::Failure(TN_INVALID, "low", "expected this bound, or high, or both");
    if (a.has("low") && a.has("high") && a.number("low") > a.number("high"))
      throw tn::Failure(
          TN_INVALID, "low",
          "expected at most " + to_text(a.number("high")) + ", the value of high; got " + to_text(a.number("low")));
  }
  static void hold(tn::NumberDeclarer& declarer) {
    const Attributes a = declarer.attributes();
    const double infinity = std::numeric_limits<double>::infinity();
    declarer.output(0, tn::Numbers::between(a.has("low") ? a.number("low") : -infinity,
                                            a.has("high") ? a.number("high") : infinity));
  }
  static Float value(const Float& x, const Attributes& a) {
    if (!a.has("low")) return min(x, a.number("high"));
    if (!a.has("high")) return max(x, a.number("low"));
    return within(x, a.number("low"), a.number("high"));
  }
  static Float gradient(GradientProgram& g, const Attributes& a) {
    const Float x = g.input(), dy = g.result_gradient();
    if (!a.has("low")) return select(x < a.number("high"), dy, 0.0);
    if (!a.has("high")) return select(x > a.number("low"), dy, 0.0);
    return pass_between(g, a.number("low"), a.number("high"));
  }
};

// slope * x + shift within 0 and 1.
struct HardSigmoid : Unchecked {
  static constexpr const char* kType = "hard_sigmoid";
  static constexpr const char* kDoc =
      "output = min(max(slope * x + shift, 0), 1), with derivative 0 at both bounds (Courbariaux, Bengio and David, "
      "\"BinaryConnect\", 2015). The attributes are those of PyTorch and Keras 3; Keras 2 had a slope of 0.2.";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::float_attribute("slope", 0.16666666666666667).at_least(0).doc("factor on x"));
    d.attribute(tn::float_attribute("shift", 0.5).doc("the output at 0"));
  }
  static void hold(tn::NumberDeclarer& declarer) { declarer.output(0, tn::Numbers::probabilities()); }
  static Float value(const Float& x, const Attributes& a) {
    return within(a.number("slope") * x + a.number("shift"), 0, 1);
  }
  static Float gradient(GradientProgram& g, const Attributes& a) {
    const Float y = g.result();
    return select(y > 0 && y < 1, a.number("slope") * g.result_gradient(), 0.0);
  }
};

struct HardSwish : Plain {
  static constexpr const char* kType = "hard_swish";
  static constexpr const char* kDoc =
      "output = x min(max(x + 3, 0), 6) / 6, with derivative 0 up to -3, 1 from 3 on and (2 x + 3) / 6 between them "
      "(Howard et al., \"Searching for MobileNetV3\", 2019).";
  static Float value(const Float& x, const Attributes&) { return x * (within(x + 3, 0, 6) * (1.0 / 6)); }
  static Float gradient(GradientProgram& g, const Attributes&) {
    const Float x = g.input();
    return g.result_gradient() * select(x >= 3, 1.0, select(x > -3, x * (1.0 / 3) + 0.5, 0.0));
  }
};

struct SoftShrink : Unchecked {
  static constexpr const char* kType = "soft_shrink";
  static constexpr const char* kDoc =
      "output = x - margin for x > margin, x + margin for x < -margin, else 0, with derivative 1, 1 and 0 (Donoho, "
      "\"De-noising by soft-thresholding\", 1995).";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::float_attribute("margin", 0.5).at_least(0).doc("values up to it become 0"));
  }
  static Float value(const Float& x, const Attributes& a) {
    const double margin = a.number("margin");
    return select(x > margin, x - margin, select(x < -margin, x + margin, 0.0));
  }
  static Float gradient(GradientProgram& g, const Attributes& a) {
    return select(abs(g.input()) > a.number("margin"), g.result_gradient(), 0.0);
  }
};

struct HardShrink : Unchecked {
  static constexpr const char* kType = "hard_shrink";
  static constexpr const char* kDoc = "output = x for |x| > margin, else 0, with derivative 1 or 0.";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::float_attribute("margin", 0.5).at_least(0).doc("values up to it become 0"));
  }
  static Float value(const Float& x, const Attributes& a) { return select(abs(x) > a.number("margin"), x, 0.0); }
  static Float gradient(GradientProgram& g, const Attributes& a) {
    return select(abs(g.input()) > a.number("margin"), g.result_gradient(), 0.0);
  }
};

struct Threshold : Unchecked {
  static constexpr const char* kType = "threshold";
  static constexpr const char* kDoc = "output = x for x > threshold, else value, with derivative 1 or 0.";
  static void declare(tn::LayerDescription& d) {
    d.attribute(tn::float_attribute("threshold", 0).doc("values up to it are replaced"));
    d.attribute(tn::float_attribute("value", 0).doc("what replaces them"));
  }
  static Float value(const Float& x, const Attributes& a) {
    return select(x > a.number("threshold"), x, a.number("value"));
  }
  static Float gradient(GradientProgram& g, const Attributes& a) {
    return select(g.input() > a.number("threshold"), g.result_gradient(), 0.0);
  }
};

}  // namespace

void add_piecewise(tn::Plugin& plugin) {
  plugin.layer<Elementwise<Relu6>>();
  plugin.layer<Elementwise<HardTanh>>();
  plugin.layer<Elementwise<Clip>>();
  plugin.layer<Elementwise<HardSigmoid>>();
  plugin.layer<Elementwise<HardSwish>>();
  plugin.layer<Elementwise<SoftShrink>>();
  plugin.layer<Elementwise<HardShrink>>();
  plugin.layer<Elementwise<Threshold>>();
}

}  // namespace tenon::activations
