// An updater: Rprop, for which only the sign of the gradient counts (M. Riedmiller, H. Braun, "A direct adaptive method
// for faster backpropagation learning: the RPROP algorithm", 1993, without taking back steps). Made for large
// minibatches. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

namespace {

struct Rprop {
  static void describe(tn::UpdaterDescription& d) {
    d.type("example.rprop",
           "Each element has a step of its own, which grows by the factor `up` while the gradient keeps its sign, and "
           "shrinks by `down` when that changes; then the element waits for one update. p = p - sign(g) * step");
    d.attribute(tn::float_attribute("learning_rate", 1).at_least(0).doc("factor of all steps"));
    d.attribute(tn::float_attribute("first", 0.01).at_least(0).doc("the first step"));
    d.attribute(tn::float_attribute("most", 1).at_least(0).doc("the largest step"));
    d.attribute(tn::float_attribute("least", 1e-6).at_least(0).doc("the smallest step"));
    d.attribute(tn::float_attribute("up", 1.2).at_least(1).doc("growth"));
    d.attribute(tn::float_attribute("down", 0.5).at_least(0).at_most(1).doc("shrinkage"));
  }

  static void record(tn::UpdateRecorder& update) {
    const tn::Attributes a = update.attributes();
    const tn::State before = update.state("gradient", 0), step = update.state("step", a.number("first"));
    const tn::Float same = update.gradient() * before;  // its sign says whether the gradient kept its own
    const tn::Float grown = min(step * a.number("up"), a.number("most"));
    const tn::Float shrunk = max(step * a.number("down"), a.number("least"));
    const tn::Float next = select(same > 0, grown, select(same < 0, shrunk, step));
    const tn::Float used = select(same < 0, 0.0, update.gradient());
    update.parameter_next(update.parameter() - update.learning_rate() * update.rate_multiplier() * sign(used) * next);
    update.state_next(before, used);
    update.state_next(step, next);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("org.example.rprop", "1.0.0", "The updater Rprop", "Apache-2.0");
  plugin.updater<Rprop>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
