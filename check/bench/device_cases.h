// Cases of devices and of providers of tables. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "check/bench/subject.h"
#include "check/cases/layer_case.h"

namespace tenon::check {

// One case for each primitive of the tables that the device lists, of random numbers if it has any; of a provider those
// that it computes. Throws Skip if machines do not run on the device, as on one without its hardware.
[[nodiscard]] std::vector<LayerCase> device_cases(const Subject& subject);

}  // namespace tenon::check
