// A model file whose layer is of an older version of its type. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "check/bench/layer_bench.h"

namespace tenon::check {

// Saves the model of a bench with this state_version in place of that of the type.
void save_older(const Bench& bench, const std::string& type, uint32_t state_version, const std::string& path);

}  // namespace tenon::check
