// SPDX-License-Identifier: Apache-2.0
#include "host/compile/lowering/scaled_integers.h"

#include "core/error.h"

namespace tenon::host {

void ScaledIntegers::follow(size_t first, const Layer& layer) {
  for (size_t i = first; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    const auto* segment = node.as<Segment>();
    const bool moves = node.is<View>() || node.is<Move>() || node.is<Gather>() ||
                       (segment != nullptr && (segment->op == TN_SEGMENT_BROADCAST || segment->op == TN_SEGMENT_SHIFT));
    if (!moves || is_float(graph_.spec(node.outputs[0]).dtype)) continue;
    const size_t sources = node.is<Move>() ? node.inputs.size() : 1;  // the others are ids or offsets
    for (size_t source = 1; source < sources; ++source)
      if (of(node.inputs[source]) != of(node.inputs[0]))
        fail(TN_UNSUPPORTED, ComponentName{layer_label(layer)},
             "it puts integers of data with different scales or offsets together");
    if (of(node.inputs[0]) != Scale{}) scales_[node.outputs[0]] = of(node.inputs[0]);
  }
}

}  // namespace tenon::host
