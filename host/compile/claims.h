// Kernels that stand for a chain of layers (tenon/claim.h). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/topology.h"
#include "host/compile/lowering.h"

namespace tenon {

// Layers of which each reads an output of the one before it.
using Chain = std::vector<LayerRef>;
using MayBeClaimed = std::function<bool(const Layer& layer, bool last)>;

// The chain of these types that ends in `last`; empty where there is none. Of several, that through the first inputs.
[[nodiscard]] Chain chain_to(const LayerRef& last, const std::vector<std::string>& types, const MayBeClaimed& may);

// The leaves with every chain that may be claimed behind one another as far as their inputs allow, so that what else
// reads the chain comes after it. Every leaf stays after its inputs.
[[nodiscard]] std::vector<LayerRef> in_order_of_claims(const std::vector<LayerRef>& leaves,
                                                       const std::vector<const Kernel*>& claims,
                                                       const MayBeClaimed& may);

// The chain as one layer. `members`: the site of each of its layers.
[[nodiscard]] std::shared_ptr<KernelSite> claim_site(const Kernel& kernel, const Chain& chain,
                                                     std::vector<std::shared_ptr<KernelSite>> members);

}  // namespace tenon
