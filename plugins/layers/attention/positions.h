// The layers of the other files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>
#include <vector>

namespace tenon::attention {

void add_over_sequences(tn::Plugin& plugin);
// Adds an attention_step to a step: the query sees the keys of earlier steps and of this one. Throws if it is not
// causal. settings: of the attention_step.
tn_ref attend_step(tn::Stepper& stepper, bool causal, tn_ref query, tn_ref key, tn_ref value,
                   const std::vector<tn::Setting>& settings);

void add_rows(tn::Plugin& plugin);
void add_positions(tn::Plugin& plugin);

}  // namespace tenon::attention
