// The site of each primitive: what a device, or a kernel, is told to prepare a node's call from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "host/plugins/device.h"
#include "host/plugins/error_sink.h"

namespace tenon {

// The dimension with its largest size filled in.
[[nodiscard]] Dim bound(const Dim& dim, const std::vector<int64_t>& bounds);

// Has the device, or the node's own kernel, prepare the call. Returns the name of the plugin, or of the kernel. bounds:
// the largest size of each symbol.
std::string prepare_call(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds, Device& device,
                         Prepared& prepared, ErrorSink& errors);

// Whether the device would rather run the gemm with its epilogue than both apart.
[[nodiscard]] bool prefers_epilogue(const Device& device, const Graph& graph, const std::vector<int64_t>& bounds,
                                    const Node& gemm);

}  // namespace tenon
