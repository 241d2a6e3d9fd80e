// The layers of the other files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tenon/plugin.hpp>
#include <vector>

namespace tenon::attention {

// The first inputs of all layers of attention, and the next ones of those that have a mask and a bias.
enum Port : uint32_t { kQuery = 0, kKey = 1, kValue = 2, kMask = 3, kBias = 4 };

void add_dense(tn::Plugin& plugin);
void add_over_sequences(tn::Plugin& plugin);
// Adds an attention_step to a step: the query sees the keys of earlier steps and of this one. Throws if it is not
// causal. settings: of the attention_step.
tn_ref attend_step(tn::Stepper& stepper, bool causal, tn_ref query, tn_ref key, tn_ref value,
                   const std::vector<tn::Setting>& settings);

void add_rows(tn::Plugin& plugin);
void add_positions(tn::Plugin& plugin);

}  // namespace tenon::attention
