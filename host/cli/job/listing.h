// The layers that a job expands to. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <tenon/tenon.hpp>

#include "host/cli/job/topology.h"

namespace tenon::cli {

// Returns the object that docs/plan.md describes: the data layers, then the layers in the order of the job. `topology`
// has made its outputs, fed by the slots of `open`, and `parameters` are theirs.
[[nodiscard]] nlohmann::json list_layers(const Job& job, const JobReader& reader, const OpenReader& open,
                                         const Topology& topology, const Parameters& parameters);
void print_layers(const nlohmann::json& listing);

}  // namespace tenon::cli
