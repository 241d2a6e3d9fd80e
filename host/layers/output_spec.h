// The specs of outputs of layers, as the makers of scans and branches check them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "core/error.h"
#include "core/topology.h"

namespace tenon::host {

using namespace core;

// Throws TN_INVALID for a missing layer, and for an output that a layer lacks.
inline const Spec& spec_of(const LayerOutput& output) {
  if (output.layer == nullptr) fail(TN_INVALID, "a layer is missing");
  if (output.output >= output.layer->outputs.size())
    fail(TN_INVALID, layer_label(*output.layer), " has no output ", output.output);
  return output.layer->outputs[output.output];
}

// Whether there are `first` dimensions, and all from number `first` on are constant.
inline bool is_constant_from(const Spec& spec, size_t first) {
  return spec.shape.size() >= first &&
         std::all_of(spec.shape.begin() + static_cast<std::ptrdiff_t>(first), spec.shape.end(),
                     [](const Dim& dim) { return dim.symbol == TN_SYMBOL_NONE; });
}

}  // namespace tenon::host
