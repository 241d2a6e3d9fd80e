// What trainings ask of ParameterSets. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/parameter_set.h"

namespace tenon::host {

using namespace core;

// Whether all values are finite.
[[nodiscard]] bool is_finite(const ParameterSet& set);

// Throws TN_INVALID if `target`, which is to receive values of `source`, is the same set, or naming the first parameter
// that one of them lacks or that differs. option: of the training, for messages: "average".
void check_receiver(const ParameterSet& source, const ParameterSet& target, const char* option);

}  // namespace tenon::host
