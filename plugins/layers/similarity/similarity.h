// The layers of bilinear.cpp and distance.cpp. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>

namespace tenon::similarity {

void add_bilinear(tn::Plugin& plugin);
void add_distance(tn::Plugin& plugin);

}  // namespace tenon::similarity
