// The layers of the other files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>

namespace tenon::attention {

void add_over_sequences(tn::Plugin& plugin);
void add_positions(tn::Plugin& plugin);

}  // namespace tenon::attention
