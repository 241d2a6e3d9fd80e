// The metrics of numbers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>

namespace tenon::metrics {

void add_regression(tn::Plugin& plugin);

}  // namespace tenon::metrics
