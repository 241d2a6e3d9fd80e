// What the layers of dense attention share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/draft/numbers.hpp>
#include <tenon/plugin.hpp>

namespace tenon::attention {

// The attributes heads and causal; dropout.
void describe_heads(tn::LayerDescription& d);
void describe_dropout(tn::LayerDescription& d);

// Inputs that are not connected are those before them: the key is the query, the value the key.
uint32_t connected(const tn::Planner& planner, uint32_t port);

// Types whose state version rose to 2 with the bias; nothing in model files changed.
struct SinceBias {
  static constexpr uint32_t kOldestState = 0;
  static void migrate(tn::Migration&) {}
};

// The inputs mask and bias of the scores; the name of the latter.
void describe_mask(tn::LayerDescription& d);
void describe_bias(tn::LayerDescription& d, const char* name);

// The end of the ports mask and bias that are connected, or absent before a connected one.
uint32_t inputs_end(const tn::Expander& expander);

// Checks the shapes of query, key, value, mask and bias against each other.
struct Shapes {
  tn::Spec query, key, value;
};
Shapes checked(const tn::Planner& planner);

}  // namespace tenon::attention
