// A layer made of a formula of one element. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <tenon/draft/numbers.hpp>
#include <tenon/plugin.hpp>

namespace tenon::activations {

using tn::Attributes;
using tn::Float;
using tn::GradientProgram;

// A layer made of a formula: value(x), and gradient(g), the gradient of x, where g.input() is x, g.result() is value(x)
// and g.result_gradient() is the gradient of the result. Values that the gradient does not read are not saved.
template <typename Formula>
struct Elementwise : tn::DeclaresNumbers<Elementwise<Formula>> {
  static void describe(tn::LayerDescription& d) {
    d.type(Formula::kType, Formula::kDoc);
    d.input("input", "any shape that begins with the samples");
    d.output("output", "the shape of the input");
    Formula::declare(d);
  }

  static void plan(tn::Planner& planner) {
    if (planner.input(0).rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
    Formula::check(planner.attributes());
    planner.output(0, planner.input(0).as(TN_COMPUTE));
  }
  static void numbers(tn::NumberDeclarer& declarer) { Formula::hold(declarer); }

  static void lower(const Attributes& attributes, tn::Builder& body) {
    tn::Program forward;
    forward.output(Formula::value(forward.full(), attributes));
    GradientProgram backward(forward);
    backward.output(Formula::gradient(backward, attributes));
    body.output(0, body.pointwise(forward, {body.input(0)}, 1, &backward).front());
  }
};

// "2.5"
inline std::string to_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

inline void require_above_zero(const Attributes& a, const char* name) {
  if (!(a.number(name) > 0))
    throw tn::Failure(TN_INVALID, name, "expected a number above 0, got " + to_text(a.number(name)));
}

// Formulas whose values have no bounds that other layers ask for.
struct Unbounded {
  static void hold(tn::NumberDeclarer&) {}
};

// Formulas that accept all values of their attributes.
struct Unchecked : Unbounded {
  static void check(const Attributes&) {}
};

// Formulas without attributes.
struct Plain : Unchecked {
  static void declare(tn::LayerDescription&) {}
};

inline Float logistic(const Float& x) { return 1 / (1 + exp(-x)); }

// Add the layers of gated.cpp, piecewise.cpp and mathematics.cpp.
void add_gated(tn::Plugin& plugin);
void add_piecewise(tn::Plugin& plugin);
void add_mathematics(tn::Plugin& plugin);

}  // namespace tenon::activations
