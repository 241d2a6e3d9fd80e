// Adam and AdamW. SPDX-License-Identifier: Apache-2.0
#include <tenon/elementary.h>

#include <tenon/plugin.hpp>

namespace {

// 1 - beta^t for t of at least 1, without cancellation for beta near 1.
tn::Float correction(double beta, const tn::Float& t) {
  if (beta == 0) return min(t, 1);  // 1, since t is at least 1
  return -expm1(tn_math_log(beta) * t);
}

struct Adam {
  static void describe(tn::UpdaterDescription& d) {
    d.type(
        "adam",
        "Adam (Kingma and Ba, \"Adam: a method for stochastic optimization\", 2015, algorithm 1) of a parameter p with "
        "gradient g, moments m and v, 0 at first, and step t, 1 in the first update and one count for all "
        "parameters: m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g * g; d = (m / (1 - beta1^t)) / "
        "(sqrt(v / (1 - beta2^t)) + epsilon); p = p - learning_rate * rate_multiplier * d. weight_decay adds "
        "weight_decay * decay_multiplier * p to g, or with decoupled to d (AdamW: Loshchilov and Hutter, "
        "\"Decoupled weight decay regularization\", 2019, algorithm 2, with the decay scaled by the learning rate, as "
        "PyTorch has it).");
    d.attribute(tn::float_attribute("learning_rate", 0.001).at_least(0).doc("step size"));
    d.attribute(tn::float_attribute("beta1", 0.9).at_least(0).at_most(1).doc("share of m that is kept; below 1"));
    d.attribute(tn::float_attribute("beta2", 0.999).at_least(0).at_most(1).doc("share of v that is kept; below 1"));
    d.attribute(tn::float_attribute("epsilon", 1e-8).at_least(0).doc("added to the root, against division by 0"));
    d.attribute(tn::float_attribute("weight_decay", 0).at_least(0).doc("penalty on large parameters"));
    d.attribute(tn::bool_attribute("decoupled", false).doc("decay the parameter itself, not through the gradient"));
  }

  static void record(tn::UpdateRecorder& update) {
    const tn::Attributes attributes = update.attributes();
    const double beta1 = below_one(attributes, "beta1");
    const double beta2 = below_one(attributes, "beta2");
    const double decay = attributes.number("weight_decay");
    const bool decoupled = attributes.flag("decoupled");

    const tn::Float p = update.parameter();
    tn::Float g = update.gradient();
    if (decay > 0 && !decoupled) g = g + decay * update.decay_multiplier() * p;
    const tn::State m = update.state("m", 0);
    const tn::State v = update.state("v", 0);
    const tn::Float m_next = beta1 * m + (1 - beta1) * g;
    const tn::Float v_next = beta2 * v + (1 - beta2) * (g * g);
    // The corrections are scalars, so they are factored out of the elements (Kingma and Ba, end of section 2): with r =
    // sqrt(1 - beta2^t), d = r / (1 - beta1^t) * m / (sqrt(v) + epsilon * r).
    const tn::Float root = sqrt(correction(beta2, update.step()));
    const tn::Float rate = update.learning_rate() * update.rate_multiplier();
    const tn::Float direction = m_next / (sqrt(v_next) + attributes.number("epsilon") * root);
    tn::Float p_next = p - rate * root / correction(beta1, update.step()) * direction;
    if (decay > 0 && decoupled) p_next = p_next - rate * decay * update.decay_multiplier() * p;
    update.state_next(m, m_next);
    update.state_next(v, v_next);
    update.parameter_next(p_next);
  }

 private:
  static double below_one(const tn::Attributes& attributes, const char* name) {
    const double beta = attributes.number(name);
    if (beta >= 1) throw tn::Failure(TN_INVALID, name, "must be below 1");
    return beta;
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.adam", "0.1.0", "Adam and AdamW", "Apache-2.0");
  plugin.updater<Adam>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
