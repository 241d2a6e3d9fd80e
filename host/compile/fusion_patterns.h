// Finds chains of layers that one kernel computes (tenon/fusion.h). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/topology.h"
#include "host/compile/native_kernel.h"

namespace tenon::host {

using namespace core;

// Layers, each of which reads an output of the one before it.
using Chain = std::vector<LayerRef>;
// Whether a layer may be part of a chain. `last`: as its last layer.
using MayBeFused = std::function<bool(const Layer& layer, bool last)>;

// Returns the chain of these types that ends in `last`; empty if there is none. Of several chains, that through the
// first inputs.
[[nodiscard]] Chain chain_to(const LayerRef& last, const std::vector<std::string>& types, const MayBeFused& may);

// Returns the leaves in an order in which the layers of every fusible chain are as close together as their inputs
// allow, so that other readers of the chain come after it. Every leaf stays after its inputs.
[[nodiscard]] std::vector<LayerRef> in_order_of_chains(const std::vector<LayerRef>& leaves,
                                                       const std::vector<const Kernel*>& fusions,
                                                       const MayBeFused& may);

// Returns the site of a chain as one layer, which the caller seals. `members`: the sites of its layers.
[[nodiscard]] std::shared_ptr<KernelSite> fusion_site(const Kernel& kernel, const Chain& chain,
                                                      std::vector<std::shared_ptr<KernelSite>> members);

// Returns the types of the layers that are lowered, which patterns are sought for.
[[nodiscard]] std::set<std::string> types_of(const Topology& topology);

}  // namespace tenon::host
