// The layer einsum. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>

namespace tenon::matmul {

void add_einsum(tn::Plugin& plugin);

}  // namespace tenon::matmul
