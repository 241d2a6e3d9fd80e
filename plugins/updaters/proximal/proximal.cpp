// Proximal updaters: a step of descent, then the minimum of the penalties near it, which makes small elements exactly
// 0. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

namespace {

using tn::Attributes;
using tn::Float;

void declare_penalties(tn::UpdaterDescription& d) {
  d.attribute(tn::float_attribute("l1_strength", 0).at_least(0).doc("penalty on sizes: small elements become 0"));
  d.attribute(tn::float_attribute("l2_strength", 0).at_least(0).doc("penalty on half the squares"));
}

// The minimum over x of (x - u)^2 / 2 + rate * (l1 |x| + l2 x^2 / 2), where u = p - rate * g.
void step(tn::UpdateRecorder& update, const Float& rate) {
  const Attributes attributes = update.attributes();
  const double l1 = attributes.number("l1_strength"), l2 = attributes.number("l2_strength");
  const Float decay = update.decay_multiplier();
  Float next = update.parameter() - rate * update.gradient();
  if (l1 > 0) next = sign(next) * max(abs(next) - rate * l1 * decay, 0);
  if (l2 > 0) next = next / (1 + rate * l2 * decay);
  update.parameter_next(next);
}

struct ProximalSgd {
  static void describe(tn::UpdaterDescription& d) {
    d.type("proximal_sgd",
           "Forward-backward splitting (Duchi and Singer, \"Efficient online and batch learning using forward backward "
           "splitting\", 2009) of a parameter p with gradient g, with a = learning_rate * rate_multiplier and c = "
           "decay_multiplier: u = p - a * g; p = sign(u) * max(|u| - a * c * l1_strength, 0) / (1 + a * c * "
           "l2_strength).");
    d.attribute(tn::float_attribute("learning_rate", 0.01).at_least(0).doc("step size"));
    declare_penalties(d);
  }

  static void record(tn::UpdateRecorder& update) { step(update, update.learning_rate() * update.rate_multiplier()); }
};

struct ProximalAdagrad {
  static void describe(tn::UpdaterDescription& d) {
    d.type("proximal_adagrad",
           "proximal_sgd with the step sizes of Adagrad (Duchi, Hazan and Singer, \"Adaptive subgradient methods for "
           "online learning and stochastic optimization\", 2011, composite mirror descent in the diagonal form) of a "
           "parameter p with gradient g and sum v, initial_sum at first: v = v + g * g; a = learning_rate * "
           "rate_multiplier / (sqrt(v) + epsilon), one for each element; then as proximal_sgd.");
    d.attribute(tn::float_attribute("learning_rate", 0.01).at_least(0).doc("step size"));
    d.attribute(tn::float_attribute("initial_sum", 0.1).at_least(0).doc("v at first; above 0 tames the first steps"));
    d.attribute(tn::float_attribute("epsilon", 1e-10).at_least(0).doc("added to the root, against division by 0"));
    declare_penalties(d);
  }

  static void record(tn::UpdateRecorder& update) {
    const Attributes attributes = update.attributes();
    const Float g = update.gradient();
    const tn::State v = update.state("v", attributes.number("initial_sum"));
    const Float v_next = v + g * g;
    update.state_next(v, v_next);
    step(update, update.learning_rate() * update.rate_multiplier() / (sqrt(v_next) + attributes.number("epsilon")));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.proximal", "0.1.0", "Proximal updaters", "Apache-2.0");
  plugin.updater<ProximalSgd>();
  plugin.updater<ProximalAdagrad>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
