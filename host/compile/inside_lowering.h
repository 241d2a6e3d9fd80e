// Lowers what is inside of scans and branches, and the layers of the host at their borders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "host/compile/cond_lowering.h"
#include "host/compile/scan_lowering.h"

namespace tenon::host {

// The scans and the branches of a topology while it is lowered. A scan may be inside of a branch.
class InsideLowering {
 public:
  // free_symbol: as of ScanLowering.
  InsideLowering(Graph& graph, int32_t free_symbol) : scans_(graph, free_symbol), conds_(graph) {}

  // Returns the spec with the steps of orders that have begun in place of those of scans.
  [[nodiscard]] Spec concrete(Spec spec) const { return scans_.concrete(std::move(spec)); }
  // Returns the value of an output as a layer reads it.
  ValueId inside(const Layer& reader, const LayerOutput& output, ValueId value, GraphWriter writer) {
    if (reader.branch != nullptr) value = conds_.inside(*reader.branch, output, value, writer);
    return reader.scan == nullptr ? value : scans_.inside(*reader.scan, output, value, writer);
  }
  // Records a layer with a scan_part or a cond_part. Returns the values of its outputs.
  std::vector<ValueId> part(const Layer& layer, const CondLowering::ValueOf& value_of, GraphWriter writer) {
    if (layer.cond_part) return conds_.part(layer, value_of, writer);
    const auto in_branch = [&](const LayerOutput& output, bool floats) {
      const ValueId value = value_of(output, floats);
      return layer.branch == nullptr ? value : conds_.inside(*layer.branch, output, value, writer);
    };
    return scans_.part(layer, in_branch, writer);
  }

 private:
  ScanLowering scans_;
  CondLowering conds_;
};

}  // namespace tenon::host
