// Updaters with a step size for each element, computed from its past gradients. Adam has a plugin of its own.
// SPDX-License-Identifier: Apache-2.0
#include "adaptive.h"

#include <tenon/elementary.h>

#include <tenon/plugin.hpp>

namespace tenon::adaptive {

namespace {

struct Adagrad {
  static void describe(tn::UpdaterDescription& d) {
    d.type("adagrad",
           "Adagrad (Duchi, Hazan and Singer, \"Adaptive subgradient methods for online learning and stochastic "
           "optimization\", 2011, in the diagonal form) of a parameter p with gradient g and sum v, initial_sum at "
           "first: g = g + weight_decay * decay_multiplier * p; v = v + g * g; p = p - learning_rate * rate_multiplier "
           "* g / (sqrt(v) + epsilon).");
    declare_rate(d, 0.01);
    d.attribute(tn::float_attribute("initial_sum", 0).at_least(0).doc("v at first; above 0 tames the first steps"));
    d.attribute(tn::float_attribute("epsilon", 1e-10).at_least(0).doc("added to the root, against division by 0"));
    declare_decay(d);
  }

  static void record(tn::UpdateRecorder& update) {
    const Attributes attributes = update.attributes();
    const Float g = decayed_gradient(update);
    const State v = update.state("v", attributes.number("initial_sum"));
    const Float v_next = v + g * g;
    update.state_next(v, v_next);
    step(update, g / (sqrt(v_next) + attributes.number("epsilon")));
  }
};

struct RowwiseAdagrad {
  static void describe(tn::UpdaterDescription& d) {
    d.type("rowwise_adagrad",
           "Adagrad with one sum v for each row of the first dimension, for large tables (Mudigere et al., \"Software-"
           "hardware co-design for fast and scalable training of deep learning recommendation models\", 2022, section "
           "4.1.4): g = g + weight_decay * decay_multiplier * p; v = v + the mean of g * g over the row; p = p - "
           "learning_rate * rate_multiplier * g / (sqrt(v) + epsilon). v is initial_sum at first.");
    declare_rate(d, 0.01);
    d.attribute(tn::float_attribute("initial_sum", 0).at_least(0).doc("v at first; above 0 tames the first steps"));
    d.attribute(tn::float_attribute("epsilon", 1e-10).at_least(0).doc("added to the root, against division by 0"));
    declare_decay(d);
  }

  static void record(tn::UpdateRecorder& update) {
    const Attributes attributes = update.attributes();
    update.grain(TN_GRAIN_ROW);  // p and g are [rows, columns], v is [rows]
    const Float g = decayed_gradient(update);
    const State v = update.row_state("v", attributes.number("initial_sum"));
    const Float v_next = v + sum_per_row(g * g) / update.row_elements();
    update.state_next(v, v_next);
    step(update, g / (sqrt(v_next) + attributes.number("epsilon")));
  }
};

struct RmsProp {
  static void describe(tn::UpdaterDescription& d) {
    d.type(
        "rmsprop",
        "RMSProp (Tieleman and Hinton, \"Neural networks for machine learning\", lecture 6.5, 2012) of a parameter p "
        "with gradient g and mean square v, 0 at first: g = g + weight_decay * decay_multiplier * p; v = rho * v + (1 "
        "- "
        "rho) * g * g; d = g / (sqrt(v) + epsilon); p = p - learning_rate * rate_multiplier * d. centered takes the "
        "variance in place of v: with the mean m = rho * m + (1 - rho) * g, sqrt(max(v - m * m, 0)). momentum takes b "
        "= momentum * b + d in place of d. Both after Graves, \"Generating sequences with recurrent neural networks\", "
        "2013, equations 38 to 45, but with epsilon outside of the root and the learning rate outside of b, as PyTorch "
        "has them.");
    declare_rate(d, 0.001);
    d.attribute(tn::float_attribute("rho", 0.9).at_least(0).at_most(1).doc("share of v and m that is kept; below 1"));
    d.attribute(tn::float_attribute("epsilon", 1e-8).at_least(0).doc("added to the root, against division by 0"));
    d.attribute(tn::bool_attribute("centered", false).doc("divide by the deviation, not by the root mean square"));
    d.attribute(tn::float_attribute("momentum", 0).at_least(0).at_most(1).doc("share of b that is kept"));
    declare_decay(d);
  }

  static void record(tn::UpdateRecorder& update) {
    const Attributes attributes = update.attributes();
    const double rho = share(attributes, "rho");
    const double momentum = attributes.number("momentum");
    const Float g = decayed_gradient(update);
    const State v = update.state("v", 0);
    const Float v_next = blend(rho, v, g * g);
    update.state_next(v, v_next);
    Float variance = v_next;
    if (attributes.flag("centered")) {
      const State m = update.state("m", 0);
      const Float m_next = blend(rho, m, g);
      update.state_next(m, m_next);
      variance = max(v_next - m_next * m_next, 0);
    }
    Float direction = g / (sqrt(variance) + attributes.number("epsilon"));
    if (momentum > 0) {
      const State b = update.state("b", 0);
      direction = momentum * b + direction;
      update.state_next(b, direction);
    }
    step(update, direction);
  }
};

struct Adadelta {
  static void describe(tn::UpdaterDescription& d) {
    d.type("adadelta",
           "Adadelta (Zeiler, \"ADADELTA: an adaptive learning rate method\", 2012, algorithm 1) of a parameter p with "
           "gradient g and mean squares v of gradients and u of steps, 0 at first: g = g + weight_decay * "
           "decay_multiplier * p; v = rho * v + (1 - rho) * g * g; d = sqrt(u + epsilon) / sqrt(v + epsilon) * g; u = "
           "rho * u + (1 - rho) * d * d; p = p - learning_rate * rate_multiplier * d. The paper has no learning rate, "
           "which is 1.");
    declare_rate(d, 1);
    d.attribute(tn::float_attribute("rho", 0.95).at_least(0).at_most(1).doc("share of v and u that is kept; below 1"));
    d.attribute(tn::float_attribute("epsilon", 1e-6).at_least(0).doc("added under both roots; begins the first step"));
    declare_decay(d);
  }

  static void record(tn::UpdateRecorder& update) {
    const Attributes attributes = update.attributes();
    const double rho = share(attributes, "rho");
    const double epsilon = attributes.number("epsilon");
    if (epsilon == 0) throw tn::Failure(TN_INVALID, "epsilon", "must be above 0, or nothing ever moves");
    const Float g = decayed_gradient(update);
    const State v = update.state("v", 0);
    const State u = update.state("u", 0);
    const Float v_next = blend(rho, v, g * g);
    const Float direction = sqrt((u + epsilon) / (v_next + epsilon)) * g;
    update.state_next(v, v_next);
    update.state_next(u, blend(rho, u, direction * direction));
    step(update, direction);
  }
};

struct Adamax {
  static void describe(tn::UpdaterDescription& d) {
    d.type(
        "adamax",
        "Adamax (Kingma and Ba, \"Adam: a method for stochastic optimization\", 2015, algorithm 2) of a parameter p "
        "with gradient g, moment m and largest gradient u, 0 at first, and step t, 1 in the first update and one "
        "count for all parameters: g = g + weight_decay * decay_multiplier * p; m = beta1 * m + (1 - beta1) * g; u = "
        "max(beta2 * u, |g| + epsilon); p = p - learning_rate * rate_multiplier / (1 - beta1^t) * m / u. The paper "
        "has no epsilon, without which an element that never had a gradient is divided by 0.");
    declare_rate(d, 0.002);
    d.attribute(tn::float_attribute("beta1", 0.9).at_least(0).at_most(1).doc("share of m that is kept; below 1"));
    d.attribute(tn::float_attribute("beta2", 0.999).at_least(0).at_most(1).doc("share of u that is kept; below 1"));
    d.attribute(tn::float_attribute("epsilon", 1e-8).at_least(0).doc("against division by 0"));
    declare_decay(d);
  }

  static void record(tn::UpdateRecorder& update) {
    const Attributes attributes = update.attributes();
    const double beta1 = share(attributes, "beta1");
    const double beta2 = share(attributes, "beta2");
    const Float g = decayed_gradient(update);
    const State m = update.state("m", 0);
    const State u = update.state("u", 0);
    const Float m_next = blend(beta1, m, g);
    const Float u_next = max(beta2 * u, abs(g) + attributes.number("epsilon"));
    update.state_next(m, m_next);
    update.state_next(u, u_next);
    const Float direction = m_next / u_next;
    // 1 - beta1^t without cancellation for beta1 near 1: a scalar, computed once for the whole update.
    step(update, beta1 == 0 ? direction : 1 / -expm1(tn_math_log(beta1) * update.step()) * direction);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.adaptive", "0.1.0", "Adagrad, RMSProp, Adadelta, Adamax, Lion, NAdam, RAdam and FTRL",
               "Apache-2.0");
  plugin.updater<Adagrad>();
  plugin.updater<RowwiseAdagrad>();
  plugin.updater<RmsProp>();
  plugin.updater<Adadelta>();
  plugin.updater<Adamax>();
  add_moments(plugin);
}

}  // namespace

}  // namespace tenon::adaptive

const tn_plugin* tenon_plugin() { return tn::entry<tenon::adaptive::describe>(); }
