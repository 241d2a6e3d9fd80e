// The names of the ports of layers, those of the host's own layers included. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "core/attribute.h"
#include "core/topology.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

// Returns the name of the port of an input or output of a layer, in static memory or that of the registry. Of the parts
// of scans and branches these are words of the host, as of data layers.
[[nodiscard]] const char* input_port(Registry& registry, const Layer& layer, size_t number);
[[nodiscard]] const char* output_port(Registry& registry, const Layer& layer, size_t number);

// Returns what model files hold of a part of a scan or of branches beside its inputs, by name: "scan" or "cond", the
// name of the layer that stands for it, and reverse, results, initial_value and shape, or branches and branch. Empty
// for any other layer.
[[nodiscard]] Values part_attributes(const Layer& layer);

}  // namespace tenon::host
