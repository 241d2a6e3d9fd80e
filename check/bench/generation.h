// A model that generates with the layer of a case, row by row. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tenon/tenon.hpp>

#include "check/cases/layer_case.h"

namespace tenon::check {

// The ids and scores that follow two prompts: each input of the layer has a row of a parameter for each id, and its
// first output are the scores. Throws Skip for a case with other inputs than one-level sequences of vectors of floats,
// Error if the layer cannot be run row by row.
[[nodiscard]] std::string generated(const Host& host, const std::string& type, const LayerCase& layer_case,
                                    uint64_t seed);

}  // namespace tenon::check
