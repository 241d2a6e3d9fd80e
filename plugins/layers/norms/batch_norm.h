// The layer batch_norm. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>

namespace tenon::norms {

void add_batch_norm(tn::Plugin& plugin);

}  // namespace tenon::norms
