// The values that trained parameters reach: those whose gradients may be wanted. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::host {

using namespace core;

// Follows a graph forward from some values through floats, while it is recorded.
class GradientReach {
 public:
  explicit GradientReach(const Graph& graph) : graph_(graph) {}

  // Adds a value that is trained. Call it before nodes that read the value are asked for.
  void start(ValueId value) {
    reached_.resize(graph_.values.size(), false);
    reached_[at(value)] = true;
  }
  // Whether a trained value reaches `value`; false for kNoValue.
  [[nodiscard]] bool reaches(ValueId value) {
    follow();
    return value != kNoValue && reached_[at(value)];
  }

 private:
  void follow() {
    reached_.resize(graph_.values.size(), false);
    for (; followed_ < graph_.nodes.size(); ++followed_) {
      const Node& node = graph_.nodes[followed_];
      // What a step leaves in a memory is recorded later: any of it may be reached.
      if (!node.is<Memory>() && std::none_of(node.inputs.begin(), node.inputs.end(),
                                             [&](ValueId input) { return input != kNoValue && reached_[at(input)]; }))
        continue;
      for (const ValueId output : node.outputs)
        if (output != kNoValue && is_float(graph_.spec(output).dtype)) reached_[at(output)] = true;
    }
  }

  const Graph& graph_;
  std::vector<bool> reached_;  // per value
  size_t followed_ = 0;        // nodes for which it is complete
};

}  // namespace tenon::host
