// A layer: out = in * sigmoid(beta * in), after P. Ramachandran, B. Zoph, Q. V. Le, "Searching for activation
// functions", 2017. The formula is written once; the host derives the gradient, fuses it with its neighbours and runs
// it on any device. SPDX-License-Identifier: MIT
#include <tenon/plugin.hpp>

TN_RESERVE_NOTE(4096);  // room for the manifest, if the plugin is built without CMake

namespace {

struct Layer {
  static void describe(tn::LayerDescription& d) {
    d.type("example.my_plugin", "out = in * sigmoid(beta * in)");
    d.input("in", "[samples, ...]");
    d.output("out", "as in");
    d.attribute(tn::float_attribute("beta", 1.0).doc("steepness; 0 gives in / 2"));
  }

  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    tn::Program p;
    const tn::Float in = p.full();
    p.output(in / (1 + exp(-attributes.number("beta") * in)));
    body.output(0, body.pointwise(p, {body.input(0)})[0]);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("example.my_plugin", "0.1.0", "The activation swish", "MIT");
  plugin.layer<Layer>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
