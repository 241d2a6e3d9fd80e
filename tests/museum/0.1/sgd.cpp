// Stochastic gradient descent. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

namespace {

struct Sgd {
  static void describe(tn::UpdaterDescription& d) {
    d.type(
        "sgd",
        "Stochastic gradient descent of a parameter p with gradient g and velocity v, 0 at first: g = g + "
        "weight_decay * decay_multiplier * p; v = momentum * v + g; d = v, or g + momentum * v with nesterov; p = p - "
        "learning_rate * rate_multiplier * d. Without momentum d = g and there is no v. Momentum as Sutskever, "
        "Martens, Dahl and Hinton state it (\"On the importance of initialization and momentum in deep learning\", "
        "2013), but with the learning rate outside the velocity, as PyTorch has it, so that a new rate counts at "
        "once.");
    d.attribute(tn::float_attribute("learning_rate", 0.01).at_least(0).doc("step size"));
    d.attribute(tn::float_attribute("momentum", 0).at_least(0).at_most(1).doc("share of the velocity that is kept"));
    d.attribute(tn::bool_attribute("nesterov", false).doc("look ahead along the velocity; needs momentum"));
    d.attribute(tn::float_attribute("weight_decay", 0).at_least(0).doc("L2 penalty: this times p is added to g"));
  }

  static void record(tn::UpdateRecorder& update) {
    const tn::Attributes attributes = update.attributes();
    const double momentum = attributes.number("momentum");
    const double decay = attributes.number("weight_decay");
    const bool nesterov = attributes.flag("nesterov");
    if (nesterov && momentum == 0) throw tn::Failure(TN_INVALID, "nesterov", "needs a momentum above 0");

    const tn::Float p = update.parameter();
    tn::Float g = update.gradient();
    if (decay > 0) g = g + decay * update.decay_multiplier() * p;
    tn::Float direction = g;
    if (momentum > 0) {
      const tn::Slot v = update.slot("velocity", 0);
      const tn::Float v_next = momentum * v + g;
      direction = nesterov ? g + momentum * v_next : v_next;
      update.slot_next(v, v_next);
    }
    update.parameter_next(p - update.learning_rate() * update.rate_multiplier() * direction);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.sgd", "0.1.0", "Stochastic gradient descent", "Apache-2.0");
  plugin.updater<Sgd>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
