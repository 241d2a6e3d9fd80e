// Lowers what is inside of scans and branches, and the layers of the host at their borders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/error.h"
#include "host/compile/lowering/cond_lowering.h"
#include "host/compile/lowering/scan_lowering.h"

namespace tenon::host {

// The scans and the branches of a topology while it is lowered. A scan may be inside of a branch.
class InsideLowering {
  // Returns work(), whose errors name the layer unless they name one.
  template <typename Work>
  static auto named(const Layer& layer, const Work& work) {
    try {
      return work();
    } catch (const Error& error) {
      throw error.component().empty() ? error.with_component(layer_label(layer)) : error;
    }
  }

 public:
  // free_symbol, leaves: as of ScanLowering.
  InsideLowering(Lowered& lowered, int32_t free_symbol, const std::vector<LayerRef>& leaves)
      : scans_(lowered, free_symbol, leaves), conds_(lowered.graph) {}

  // Returns the spec with the steps of orders that have begun in place of those of scans.
  [[nodiscard]] Spec concrete(Spec spec) const { return scans_.concrete(std::move(spec)); }
  // Whether loops of the body of a layer are to run within the steps of a scan that it is inside of.
  [[nodiscard]] bool nests(const Layer& layer) const { return scans_.reach().reaches_body(layer); }
  // Returns the value of an output as a layer reads it. Errors name the layer.
  ValueId inside(const Layer& reader, const LayerOutput& output, ValueId value, GraphWriter writer) {
    return named(reader, [&] {
      const bool chosen = reader.branch != nullptr;
      const ValueId given = chosen ? conds_.inside(*reader.branch, output, value, writer) : value;
      return reader.scan == nullptr ? given : scans_.inside(*reader.scan, output, given, writer);
    });
  }
  // Records a layer with a scan_part or a cond_part. Returns the values of its outputs. Errors name the layer, or one
  // inside of the scan.
  std::vector<ValueId> part(const Layer& layer, const CondLowering::ValueOf& value_of, GraphWriter writer) {
    if (layer.cond_part()) return conds_.part(layer, value_of, writer);
    const auto in_branch = [&](const LayerOutput& output, bool floats) {
      const ValueId value = value_of(output, floats);
      return layer.branch == nullptr ? value : conds_.inside(*layer.branch, output, value, writer);
    };
    return named(layer, [&] { return scans_.part(layer, in_branch, writer); });
  }

 private:
  ScanLowering scans_;
  CondLowering conds_;
};

}  // namespace tenon::host
