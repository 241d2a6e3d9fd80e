// LAMB. SPDX-License-Identifier: Apache-2.0
#include <tenon/elementary.h>

#include <tenon/plugin.hpp>

namespace {

using tn::Attributes;
using tn::Float;

double below_one(const Attributes& attributes, const char* name) {
  const double beta = attributes.number(name);
  if (beta >= 1) throw tn::Failure(TN_INVALID, name, "must be below 1");
  return beta;
}

// 1 - beta^t for t of at least 1, without cancellation for beta near 1.
Float correction(double beta, const Float& t) {
  if (beta == 0) return min(t, 1);  // 1, since t is at least 1
  return -expm1(tn_math_log(beta) * t);
}

// The Euclidean norm of the whole tensor.
Float norm(const Float& x) { return sqrt(sum_all(x * x)); }

struct Lamb {
  static void describe(tn::UpdaterDescription& d) {
    d.type("lamb",
           "LAMB (You et al., \"Large batch optimization for deep learning: training BERT in 76 minutes\", 2020, "
           "algorithm 2) of a parameter p with gradient g, moments m and v, 0 at first, and step t, 1 in the first "
           "update and one count for all parameters: m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g "
           "* g; d = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * decay_multiplier * p; "
           "p = p - learning_rate * rate_multiplier * clamp(|p|, least_norm, most_norm) / |d| * d, where |.| is the "
           "Euclidean norm over the whole tensor. Where a norm is 0 the quotient is 1, or nothing would leave 0.");
    d.attribute(tn::float_attribute("learning_rate", 0.001).at_least(0).doc("step size, as a share of |p|"));
    d.attribute(tn::float_attribute("beta1", 0.9).at_least(0).at_most(1).doc("share of m that is kept; below 1"));
    d.attribute(tn::float_attribute("beta2", 0.999).at_least(0).at_most(1).doc("share of v that is kept; below 1"));
    d.attribute(tn::float_attribute("epsilon", 1e-6).at_least(0).doc("added to the root, against division by 0"));
    d.attribute(tn::float_attribute("weight_decay", 0).at_least(0).doc("this times p is added to the direction"));
    d.attribute(tn::float_attribute("least_norm", 0).at_least(0).doc("a smaller |p| counts as this"));
    d.attribute(tn::float_attribute("most_norm").at_least(0).doc("a larger |p| counts as this; absent, no limit"));
  }

  static void record(tn::UpdateRecorder& update) {
    const Attributes attributes = update.attributes();
    const double beta1 = below_one(attributes, "beta1");
    const double beta2 = below_one(attributes, "beta2");
    const double decay = attributes.number("weight_decay");

    const Float p = update.parameter();
    const Float g = update.gradient();
    const tn::State m = update.state("m", 0);
    const tn::State v = update.state("v", 0);
    const Float m_next = beta1 * m + (1 - beta1) * g;
    const Float v_next = beta2 * v + (1 - beta2) * (g * g);
    const Float m_scale = 1 / correction(beta1, update.step());
    const Float v_scale = 1 / sqrt(correction(beta2, update.step()));
    Float direction = m_scale * m_next / (v_scale * sqrt(v_next) + attributes.number("epsilon"));
    if (decay > 0) direction = direction + decay * update.decay_multiplier() * p;

    update.grain(TN_GRAIN_TENSOR);  // the norms are those of one tensor
    const Float length = norm(direction);
    const Float size = counted_norm(attributes, norm(p));
    const Float ratio = select(size > 0 && length > 0, size / length, 1.0);
    update.state_next(m, m_next);
    update.state_next(v, v_next);
    update.parameter_next(p - update.learning_rate() * update.rate_multiplier() * ratio * direction);
  }

 private:
  // The norm of p, bounded to [least_norm, most_norm].
  static Float counted_norm(const Attributes& attributes, const Float& norm) {
    const double least = attributes.number("least_norm");
    Float counted = least > 0 ? max(norm, least) : norm;
    if (!attributes.has("most_norm")) return counted;
    const double most = attributes.number("most_norm");
    if (most <= 0 || most < least)
      throw tn::Failure(TN_INVALID, "most_norm", "must be above 0 and not below least_norm");
    return min(counted, most);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.lamb", "0.1.0", "LAMB", "Apache-2.0");
  plugin.updater<Lamb>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
