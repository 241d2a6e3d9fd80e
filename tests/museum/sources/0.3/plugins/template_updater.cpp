// An updater: descent along the sign of a momentum, after J. Bernstein, Y. Wang, K. Azizzadenesheli, A. Anandkumar,
// "signSGD: compressed optimisation for non-convex problems", 2018, algorithm 2 ("Signum").
// SPDX-License-Identifier: MIT
#include <tenon/plugin.hpp>

TN_RESERVE_NOTE(4096);  // room for the manifest, if the plugin is built without CMake

namespace {

struct Updater {
  static void describe(tn::UpdaterDescription& d) {
    d.type("example.my_plugin",
           "m = momentum * m + (1 - momentum) * g; p = p - learning_rate * (sign(m) + weight_decay * p)");
    d.attribute(tn::float_attribute("learning_rate", 1e-3).at_least(0).doc("step size"));
    d.attribute(tn::float_attribute("momentum", 0.9).at_least(0).at_most(1).doc("share of m that is kept"));
    d.attribute(tn::float_attribute("weight_decay", 0).at_least(0).doc("pull towards 0"));
  }

  static void record(tn::UpdateRecorder& update) {
    const double momentum = update.attributes().number("momentum"), decay = update.attributes().number("weight_decay");
    const tn::Float p = update.parameter();
    const tn::State m = update.state("m", 0);
    const tn::Float next = momentum * m + (1 - momentum) * update.gradient();
    const tn::Float step = sign(next) + decay * update.decay_multiplier() * p;
    update.parameter_next(p - update.learning_rate() * update.rate_multiplier() * step);
    update.state_next(m, next);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("example.my_plugin", "0.1.0", "Descent along the sign of a momentum", "MIT");
  plugin.updater<Updater>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
