// Comparisons, logic and choice, element by element. Truth values are floats, 1 and 0; any number but 0 is true.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/draft/numbers.hpp>

#include "broadcast.h"

namespace tenon::arithmetic {

namespace {

using tn::Float;
using tn::Logical;

// The base of layers whose results are 0 and 1.
struct IsTruth : tn::DeclaresNumbers<IsTruth> {
  static void numbers(tn::NumberDeclarer& declarer) { declarer.output(0, tn::Numbers::zero_or_one()); }
};

// A layer whose result is 1 where is_true(a, b), else 0. It has no derivative.
template <typename Formula>
struct Truth : IsTruth {
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
    const Float a = operands.declare(forward, 0);
    const Float b = operands.declare(forward, 1);
    forward.output(select(Formula::is_true(a, b), 1.0, 0.0));
    body.output(0, body.pointwise(forward, operands.values, operands.leading).front());
  }
};

struct Equal {
  static constexpr const char* kType = "equal";
  static constexpr const char* kDoc = "1 where a equals b, else 0, element by element. It has no derivative.";
  static Logical is_true(const Float& a, const Float& b) { return a == b; }
};

struct NotEqual {
  static constexpr const char* kType = "not_equal";
  static constexpr const char* kDoc = "1 where a differs from b, else 0, element by element. It has no derivative.";
  static Logical is_true(const Float& a, const Float& b) { return a != b; }
};

struct Less {
  static constexpr const char* kType = "less";
  static constexpr const char* kDoc = "1 where a is below b, else 0, element by element. It has no derivative.";
  static Logical is_true(const Float& a, const Float& b) { return a < b; }
};

struct LessEqual {
  static constexpr const char* kType = "less_equal";
  static constexpr const char* kDoc = "1 where a is at most b, else 0, element by element. It has no derivative.";
  static Logical is_true(const Float& a, const Float& b) { return a <= b; }
};

struct Greater {
  static constexpr const char* kType = "greater";
  static constexpr const char* kDoc = "1 where a is above b, else 0, element by element. It has no derivative.";
  static Logical is_true(const Float& a, const Float& b) { return a > b; }
};

struct GreaterEqual {
  static constexpr const char* kType = "greater_equal";
  static constexpr const char* kDoc = "1 where a is at least b, else 0, element by element. It has no derivative.";
  static Logical is_true(const Float& a, const Float& b) { return a >= b; }
};

struct And {
  static constexpr const char* kType = "logical_and";
  static constexpr const char* kDoc =
      "1 where both a and b differ from 0, else 0, element by element. It has no derivative.";
  static Logical is_true(const Float& a, const Float& b) { return a != 0 && b != 0; }
};

struct Or {
  static constexpr const char* kType = "logical_or";
  static constexpr const char* kDoc =
      "1 where a or b differs from 0, else 0, element by element. It has no derivative.";
  static Logical is_true(const Float& a, const Float& b) { return a != 0 || b != 0; }
};

struct Xor {
  static constexpr const char* kType = "logical_xor";
  static constexpr const char* kDoc =
      "1 where one of a and b differs from 0, the other does not, else 0, element by element. It has no derivative.";
  static Logical is_true(const Float& a, const Float& b) { return (a != 0 && b == 0) || (a == 0 && b != 0); }
};

struct Not : IsTruth {
  static void describe(tn::LayerDescription& d) {
    d.type("logical_not", "1 where the input is 0, else 0. It has no derivative.");
    d.input("input", "[samples, ...]");
    d.output("output", "the shape of the input");
  }
  static void plan(tn::Planner& planner) { planner.output(0, broadcast_shape(planner)); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    tn::Program forward;
    forward.output(select(forward.full() == 0, 1.0, 0.0));
    body.output(0, body.pointwise(forward, {body.input(0)}).front());
  }
};

struct Where {
  static void describe(tn::LayerDescription& d) {
    d.type("where",
           "a where the condition is not 0, else b, element by element. The derivative goes to the one chosen.");
    d.input("condition", "[samples, ...]: 1 and 0, such as the output of a comparison or a mask");
    d.input("a", "[samples, ...]");
    d.input("b", "[samples, ...]");
    d.output("output", "the shapes of the inputs, broadcast to each other");
  }
  static void plan(tn::Planner& planner) { planner.output(0, broadcast_shape(planner)); }
  static void lower(const tn::Attributes&, tn::Builder& body) {
    const Operands operands = broadcast(body, {body.input(0), body.input(1), body.input(2)});
    tn::Program forward;
    const Float condition = operands.declare(forward, 0);
    const Float a = operands.declare(forward, 1);
    const Float b = operands.declare(forward, 2);
    forward.output(select(condition != 0, a, b));
    body.output(0, body.pointwise(forward, operands.values, operands.leading).front());
  }
};

struct MaskedFill : tn::DeclaresNumbers<MaskedFill> {
  static void describe(tn::LayerDescription& d) {
    d.type("masked_fill", "A number where the mask is 1, the input where it is 0, element by element.");
    d.input("input", "[samples, ...]");
    d.input("mask", "[samples, ...]: 1 and 0, such as the output of a comparison");
    d.output("output", "the shapes of the inputs, broadcast to each other");
    d.attribute(tn::float_attribute("value", 0).doc("the number, which is finite: for scores before a softmax -1e9"));
  }
  static void plan(tn::Planner& planner) { planner.output(0, broadcast_shape(planner)); }
  static void numbers(tn::NumberDeclarer& declarer) {
    declarer.input(1, tn::Numbers::zero_or_one().advice("1 fills an element"));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const Operands operands = broadcast(body, {body.input(0), body.input(1)});
    tn::Program forward;
    const Float input = operands.declare(forward, 0);
    const Float mask = operands.declare(forward, 1);
    forward.output(select(mask != 0, attributes.number("value"), input));
    body.output(0, body.pointwise(forward, operands.values, operands.leading).front());
  }
};

}  // namespace

void add_comparisons(tn::Plugin& plugin) {
  plugin.layer<Truth<Equal>>();
  plugin.layer<Truth<NotEqual>>();
  plugin.layer<Truth<Less>>();
  plugin.layer<Truth<LessEqual>>();
  plugin.layer<Truth<Greater>>();
  plugin.layer<Truth<GreaterEqual>>();
  plugin.layer<Truth<And>>();
  plugin.layer<Truth<Or>>();
  plugin.layer<Truth<Xor>>();
  plugin.layer<Not>();
  plugin.layer<Where>();
  plugin.layer<MaskedFill>();
}

}  // namespace tenon::arithmetic
