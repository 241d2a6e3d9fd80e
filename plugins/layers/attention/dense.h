// What the layers of dense attention share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>

namespace tenon::attention {

// The attributes heads and causal; dropout.
void describe_heads(tn::LayerDescription& d);
void describe_dropout(tn::LayerDescription& d);

// Inputs that are not connected are those before them: the key is the query, the value the key.
uint32_t connected(const tn::Planner& planner, uint32_t port);

// Checks the shapes of query, key, value and mask against each other.
struct Shapes {
  tn::Spec query, key, value;
};
Shapes checked(const tn::Planner& planner);

}  // namespace tenon::attention
