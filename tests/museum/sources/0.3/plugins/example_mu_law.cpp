// A layer: the companding of telephony, which makes quiet sounds louder (ITU-T recommendation G.711, mu-law):
//   out = sign(in) * log(1 + mu * |in|) / log(1 + mu), for in from -1 to 1.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <tenon/plugin.hpp>

namespace {

struct MuLaw {
  static void describe(tn::LayerDescription& d) {
    d.type("example.mu_law", "out = sign(in) * log(1 + mu * |in|) / log(1 + mu) (ITU-T G.711)");
    d.input("in", "[samples, ...]: from -1 to 1");
    d.output("out", "as in");
    d.attribute(tn::float_attribute("mu", 255).at_least(1).doc("how much louder quiet sounds get"));
  }

  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const double mu = attributes.number("mu");
    tn::Program p;
    const tn::Float x = p.full();
    p.output(sign(x) * log1p(mu * abs(x)) / std::log1p(mu));
    body.output(0, body.pointwise(p, {body.input(0)})[0]);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("org.example.mu_law", "1.0.0", "The companding of telephony", "Apache-2.0");
  plugin.layer<MuLaw>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
