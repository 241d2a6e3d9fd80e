// Lion, NAdam and RAdam, which steer by moments of the gradient, and FTRL. SPDX-License-Identifier: Apache-2.0
#include <tenon/elementary.h>

#include "adaptive.h"

namespace tenon::adaptive {

namespace {

void declare_betas(tn::UpdaterDescription& d, double beta2, const char* second) {
  d.attribute(tn::float_attribute("beta1", 0.9).at_least(0).at_most(1).doc("share of m that is kept; below 1"));
  d.attribute(tn::float_attribute("beta2", beta2).at_least(0).at_most(1).doc(second));
}

// 1 - beta^t without cancellation for beta near 1: a scalar, computed once for the whole update.
Float missing(double beta, const Float& t) { return beta == 0 ? 1 + 0 * t : -expm1(tn_math_log(beta) * t); }

struct Lion {
  static void describe(tn::UpdaterDescription& d) {
    d.type("lion",
           "Lion (Chen et al., \"Symbolic discovery of optimization algorithms\", 2023, program 1) of a parameter p "
           "with gradient g and moment m, 0 at first: p = p - learning_rate * rate_multiplier * (sign(beta1 * m + (1 - "
           "beta1) * g) + weight_decay * decay_multiplier * p); m = beta2 * m + (1 - beta2) * g. Learning rates are 3 "
           "to 10 times smaller than those of Adam.");
    declare_rate(d, 1e-4);
    d.attribute(tn::float_attribute("beta1", 0.9).at_least(0).at_most(1).doc("share of m in the step; below 1"));
    d.attribute(tn::float_attribute("beta2", 0.99).at_least(0).at_most(1).doc("share of m that is kept; below 1"));
    d.attribute(
        tn::float_attribute("weight_decay", 0).at_least(0).doc("share of p that each step removes, times the rate"));
  }

  static void record(tn::UpdateRecorder& update) {
    const Attributes attributes = update.attributes();
    const double beta1 = share(attributes, "beta1"), beta2 = share(attributes, "beta2");
    const double decay = attributes.number("weight_decay");
    const Float g = update.gradient();
    const State m = update.state("m", 0);
    Float direction = sign(blend(beta1, m, g));
    if (decay != 0) direction = direction + decay * update.decay_multiplier() * update.parameter();
    update.state_next(m, blend(beta2, m, g));
    step(update, direction);
  }
};

struct Nadam {
  static void describe(tn::UpdaterDescription& d) {
    d.type(
        "nadam",
        "Adam with Nesterov momentum (Dozat, \"Incorporating Nesterov momentum into Adam\", 2016, with a constant "
        "share of the momentum) of a parameter p with gradient g, moments m and v, 0 at first, and step t, 1 in the "
        "first update: g = g + weight_decay * decay_multiplier * p; m = beta1 * m + (1 - beta1) * g; v = beta2 * v + "
        "(1 - beta2) * g * g; n = beta1 * m / (1 - beta1^(t + 1)) + (1 - beta1) * g / (1 - beta1^t); p = p - "
        "learning_rate * rate_multiplier * n / (sqrt(v / (1 - beta2^t)) + epsilon).");
    declare_rate(d, 0.002);
    declare_betas(d, 0.999, "share of v that is kept; below 1");
    d.attribute(tn::float_attribute("epsilon", 1e-8).at_least(0).doc("added to the root, against division by 0"));
    declare_decay(d);
  }

  static void record(tn::UpdateRecorder& update) {
    const Attributes attributes = update.attributes();
    const double beta1 = share(attributes, "beta1"), beta2 = share(attributes, "beta2");
    const Float g = decayed_gradient(update);
    const State m = update.state("m", 0);
    const State v = update.state("v", 0);
    const Float m_next = blend(beta1, m, g);
    const Float v_next = blend(beta2, v, g * g);
    update.state_next(m, m_next);
    update.state_next(v, v_next);
    const Float t = update.step();
    const Float ahead = (beta1 / missing(beta1, t + 1)) * m_next + ((1 - beta1) / missing(beta1, t)) * g;
    step(update, ahead / (sqrt(v_next * (1 / missing(beta2, t))) + attributes.number("epsilon")));
  }
};

struct Radam {
  static void describe(tn::UpdaterDescription& d) {
    d.type(
        "radam",
        "Rectified Adam (Liu et al., \"On the variance of the adaptive learning rate and beyond\", 2020, algorithm "
        "2) of a parameter p with gradient g, moments m and v, 0 at first, and step t, 1 in the first update: g = g + "
        "weight_decay * decay_multiplier * p; m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g * g; "
        "with s = 2 / (1 - beta2) - 1 and r = s - 2 t beta2^t / (1 - beta2^t), n = m / (1 - beta1^t), where r > 5 "
        "times sqrt((r - 4) (r - 2) s / ((s - 4) (s - 2) r)) / (sqrt(v / (1 - beta2^t)) + epsilon); p = p - "
        "learning_rate * rate_multiplier * n. beta2 is at least 0.8, below which r never exceeds 5.");
    declare_rate(d, 0.001);
    d.attribute(tn::float_attribute("beta1", 0.9).at_least(0).at_most(1).doc("share of m that is kept; below 1"));
    d.attribute(tn::float_attribute("beta2", 0.999).at_least(0.8).at_most(1).doc("share of v that is kept; below 1"));
    d.attribute(tn::float_attribute("epsilon", 1e-8).at_least(0).doc("added to the root, against division by 0"));
    declare_decay(d);
  }

  static void record(tn::UpdateRecorder& update) {
    const Attributes attributes = update.attributes();
    const double beta1 = share(attributes, "beta1"), beta2 = share(attributes, "beta2");
    const Float g = decayed_gradient(update);
    const State m = update.state("m", 0);
    const State v = update.state("v", 0);
    const Float m_next = blend(beta1, m, g);
    const Float v_next = blend(beta2, v, g * g);
    update.state_next(m, m_next);
    update.state_next(v, v_next);
    const Float t = update.step();
    const Float left = missing(beta2, t);  // 1 - beta2^t
    const double most = 2 / (1 - beta2) - 1;
    const Float length = most - 2 * t * (1 - left) / left;
    const Float counted = max(length, 5);
    const Float rectified = sqrt((counted - 4) * (counted - 2) * (most / ((most - 4) * (most - 2))) / counted);
    const Float scale = rectified / (sqrt(v_next * (1 / left)) + attributes.number("epsilon"));
    step(update, m_next * (1 / missing(beta1, t)) * select(length > 5, scale, 1.0));
  }
};

struct Ftrl {
  static void describe(tn::UpdaterDescription& d) {
    d.type("ftrl",
           "Follow the regularised leader, per coordinate (McMahan et al., \"Ad click prediction: a view from the "
           "trenches\", 2013, algorithm 1) of a parameter p with gradient g, sum z and sum of squares n, 0 at first, "
           "and rate a = learning_rate * rate_multiplier: z = z + g - (sqrt(n + g * g) - sqrt(n)) / a * p; n = n + g * "
           "g; p = 0 where |z| <= l1_strength, else -(z - sign(z) * l1_strength) / ((beta + sqrt(n)) / a + l2_strength "
           "* decay_multiplier). Where a "
           "is 0, or an element had no gradient yet, nothing changes. The learning rate is meant to be constant.");
    declare_rate(d, 0.1);
    d.attribute(tn::float_attribute("beta", 1).at_least(0).doc("added to the root: smaller first steps"));
    d.attribute(tn::float_attribute("l1_strength", 0).at_least(0).doc("elements whose |z| is at most this become 0"));
    d.attribute(tn::float_attribute("l2_strength", 0).at_least(0).doc("L2 penalty"));
  }

  static void record(tn::UpdateRecorder& update) {
    const Attributes attributes = update.attributes();
    const double l1 = attributes.number("l1_strength"), l2 = attributes.number("l2_strength");
    const Float p = update.parameter(), g = update.gradient();
    const Float rate = update.learning_rate() * update.rate_multiplier();
    const State z = update.state("z", 0);
    const State n = update.state("n", 0);
    const Float inverse = 1 / select(rate > 0, rate, 1.0);
    const Float n_next = n + g * g;
    const Float z_next = z + g - (sqrt(n_next) - sqrt(n)) * inverse * p;
    const tn::Logical moves = rate > 0 && (n > 0 || g != 0);  // g * g of a tiny gradient is 0
    update.state_next(n, select(moves, n_next, n));
    update.state_next(z, select(moves, z_next, z));
    Float divisor = (attributes.number("beta") + sqrt(n_next)) * inverse;
    if (l2 != 0) divisor = divisor + l2 * update.decay_multiplier();
    const Float solved = select(abs(z_next) <= l1, 0.0, -(z_next - sign(z_next) * l1) / divisor);
    update.parameter_next(select(moves, solved, p));
  }
};

}  // namespace

void add_moments(tn::Plugin& plugin) {
  plugin.updater<Lion>();
  plugin.updater<Nadam>();
  plugin.updater<Radam>();
  plugin.updater<Ftrl>();
}

}  // namespace tenon::adaptive
