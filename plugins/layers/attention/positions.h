// The layers that tell positions apart. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>

namespace tenon::attention {

void add_positions(tn::Plugin& plugin);

}  // namespace tenon::attention
