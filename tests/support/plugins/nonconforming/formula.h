// The base of plugins that break a rule for some attributes: the layer "bad.formula", y = factor * x, with a gradient
// of its own. SPDX-License-Identifier: Apache-2.0
#include <string>
#include <tenon/plugin.hpp>

TN_RESERVE_NOTE(4096);

#ifndef FACTOR
#define FACTOR attributes.number("factor")
#endif
#ifndef SLOPE
#define SLOPE 1.0
#endif

namespace {

struct Formula {
  static void describe(tn::LayerDescription& d) {
    d.type("bad.formula", "out = factor * in");
    d.input("in", "any shape");
    d.output("out", "as in");
    d.attribute(tn::float_attribute("factor", 2).at_least(0.125).doc("the factor"));
    d.attribute(tn::int_attribute("order", 3).at_least(1).at_most(100).doc("changes nothing"));
    d.attribute(tn::string_attribute("how", "plain").one_of({"plain", "fast", "slow", "safe", "odd"}).doc("likewise"));
    d.attribute(tn::bool_attribute("strict", false).doc("likewise"));
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const double factor = FACTOR, slope = SLOPE * factor;
    tn::Program forward;
    forward.output(factor * forward.full());
    tn::GradientProgram backward(forward);
    backward.output(slope * backward.result_gradient());
    body.output(0, body.pointwise(forward, {body.input(0)}, 1, &backward)[0]);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("bad." NAME, "1.0.0", "A layer that may break a rule", "Apache-2.0");
  plugin.layer<Formula>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
