// The scales of integers of data layers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "core/graph/graph.h"
#include "core/topology.h"

namespace tenon::host {

using namespace core;

// How float ports read an integer x: as factor * x + offset.
struct Scale {
  double factor = 1, offset = 0;
  bool operator==(const Scale&) const = default;
};

// The scales of the integers of a graph, while it is recorded.
class ScaledIntegers {
 public:
  explicit ScaledIntegers(const Graph& graph) : graph_(graph) {}

  void set(ValueId value, const Scale& scale) { scales_[value] = scale; }
  [[nodiscard]] bool is_scaled(ValueId value) const { return scales_.contains(value); }
  [[nodiscard]] Scale of(ValueId value) const {
    const auto known = scales_.find(value);
    return known == scales_.end() ? Scale{} : known->second;
  }
  // Passes scales on through the nodes from number `first` on that only move elements. Throws TN_UNSUPPORTED, naming
  // the layer that recorded them, if they put integers with different scales together.
  void follow(size_t first, const Layer& layer);

 private:
  const Graph& graph_;
  std::map<ValueId, Scale> scales_;
};

}  // namespace tenon::host
