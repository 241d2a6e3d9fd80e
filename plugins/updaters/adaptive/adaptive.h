// What the updaters of this plugin share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>

namespace tenon::adaptive {

using tn::Attributes;
using tn::Float;
using tn::State;

inline void declare_rate(tn::UpdaterDescription& d, double rate) {
  d.attribute(tn::float_attribute("learning_rate", rate).at_least(0).doc("step size"));
}
inline void declare_decay(tn::UpdaterDescription& d) {
  d.attribute(tn::float_attribute("weight_decay", 0).at_least(0).doc("L2 penalty: this times p is added to g"));
}

// An attribute in [0, 1): the share of an old value that is kept.
inline double share(const Attributes& attributes, const char* name) {
  const double value = attributes.number(name);
  if (value >= 1) throw tn::Failure(TN_INVALID, name, "must be below 1");
  return value;
}

// g + weight_decay * decay_multiplier * p.
inline Float decayed_gradient(tn::UpdateRecorder& update) {
  const double decay = update.attributes().number("weight_decay");
  if (decay == 0) return update.gradient();
  return update.gradient() + decay * update.decay_multiplier() * update.parameter();
}

// An exponential moving average.
inline Float blend(double share, const Float& old, const Float& fresh) { return share * old + (1 - share) * fresh; }

// p = p - learning_rate * rate_multiplier * direction.
inline void step(tn::UpdateRecorder& update, const Float& direction) {
  update.parameter_next(update.parameter() - update.learning_rate() * update.rate_multiplier() * direction);
}

// Adds the updaters of moments.cpp.
void add_moments(tn::Plugin& plugin);

}  // namespace tenon::adaptive
