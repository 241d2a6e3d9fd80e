// Prepares the call of a node: describes its operation to the device or to the native kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "host/plugins/device.h"
#include "host/plugins/error_sink.h"

namespace tenon::host {

using namespace core;

// Lets the device, or the native kernel of the node, prepare its call. Returns the name of the device's plugin, or of
// the kernel. bounds[symbol]: the largest size.
std::string prepare_call(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds, Device& device,
                         Prepared& prepared, ErrorSink& errors);

// Whether the device runs the product with its epilogue faster than both as separate calls.
[[nodiscard]] bool prefers_epilogue(Device& device, const Graph& graph, const std::vector<int64_t>& bounds,
                                    const Node& product);

// Whether the device runs a node that reads rows of tables, a GatherGemm or a Coalesce of products, faster than the
// nodes that it stands for.
[[nodiscard]] bool prefers_rows(Device& device, const Graph& graph, const std::vector<int64_t>& bounds,
                                const Node& node);

// Returns the bytes of the packed B of a product that runs many times; 0 if the device reads B itself. bounds as above.
[[nodiscard]] uint64_t packed_bytes(Device& device, const Graph& graph, const std::vector<int64_t>& bounds,
                                    const Node& product);

}  // namespace tenon::host
