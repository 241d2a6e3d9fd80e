// The metrics that are means. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>

namespace tenon::metrics {

// average, mean_squared_error, mean_absolute_error, perplexity.
void add_means(tn::Plugin& plugin);

}  // namespace tenon::metrics
