// Lowers the scans of a topology. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/topology.h"
#include "host/compile/lowering/lowering.h"

namespace tenon::host {

using namespace core;

// Returns the leaves with those inside of a scan directly before the leaf that stands for the scan: the nodes of a loop
// must be together. Layers stay behind those that they read.
[[nodiscard]] std::vector<LayerRef> in_order_of_scans(const std::vector<LayerRef>& leaves);

// What the memories of scans have a part in. Where such values enter a loop inside of a step of their scan, it may have
// to run within these steps, and so needs a nested order. A loop that they do not enter runs once over all steps, which
// is faster.
class MemoryReach {
 public:
  // leaves: of a topology, each after those that it reads.
  explicit MemoryReach(const std::vector<LayerRef>& leaves);
  // Whether memories of the scan around have a part in what layers inside of `scan` read.
  [[nodiscard]] bool reaches(const Scan& scan) const { return nested_.contains(&scan); }
  // Whether memories of the scan that a layer is inside of have a part in what it reads, so that loops of its body are
  // to run within the steps of that scan.
  [[nodiscard]] bool reaches_body(const Layer& layer) const;

 private:
  std::map<const Layer*, std::set<const Scan*>> scans_;  // by leaf: whose memories have a part in it
  std::set<const Scan*> nested_;
};

// Records the parts of scans into a graph.
class ScanLowering {
 public:
  // free_symbol: the first that nothing uses before the first order of steps. leaves: as of MemoryReach. Adds the
  // carried states of memories to `lowered`.
  ScanLowering(Lowered& lowered, int32_t free_symbol, const std::vector<LayerRef>& leaves)
      : graph_(lowered.graph), carried_(lowered.carried), free_symbol_(free_symbol), reach_(leaves) {}

  [[nodiscard]] const MemoryReach& reach() const { return reach_; }
  // Returns the spec with the steps of orders that have begun in place of those of scans.
  [[nodiscard]] Spec concrete(Spec spec) const;
  // Returns the value of an output as layers inside of a scan read it: that of a layer inside and a constant one as it
  // is, others from outside at each step of their sequence, and sequences from outside whole; what is from outside of a
  // scan around too, as that has it. Begins the scan.
  ValueId inside(const Scan& scan, const LayerOutput& output, ValueId value, GraphWriter writer);
  // The value of an output, and in the compute type if `floats`.
  using ValueOf = std::function<ValueId(const LayerOutput& output, bool floats)>;
  // Records a part. Returns the values of its outputs. The end of a scan throws TN_UNSUPPORTED, naming the layer, if a
  // layer inside cannot run step by step.
  std::vector<ValueId> part(const Layer& layer, const ValueOf& value_of, GraphWriter writer);

 private:
  struct Begun {
    int32_t order = -1, loop = -1;
  };
  Begun begin(const Scan& scan, GraphWriter& writer);
  // Returns the first symbol that nothing uses.
  [[nodiscard]] int32_t free_symbol() const;
  [[nodiscard]] Dim concrete(const Dim& dim) const;
  // Returns the value of an output as it is around a scan: inside of the one around, or outside of all.
  ValueId around(const Scan& scan, const LayerOutput& output, ValueId value, GraphWriter& writer);
  ValueId enter(const Scan& scan, ValueId value, GraphWriter& writer);
  // Returns the row of each step of sequences; of two levels the sub-sequence.
  ValueId enter_rows(const Scan& scan, ValueId value, GraphWriter& writer);
  ValueId enter_sequences(const Scan& scan, ValueId value, GraphWriter& writer);
  ValueId memory(const Layer& layer, ValueId initial, GraphWriter& writer);
  std::vector<ValueId> end(const Layer& layer, const ValueOf& value_of, GraphWriter& writer);

  Graph& graph_;
  std::vector<CarriedUse>& carried_;
  std::map<const Layer*, size_t> carried_of_;  // by memory
  const int32_t free_symbol_;
  const MemoryReach reach_;
  std::map<const Scan*, Begun> begun_;
  std::map<int32_t, Dim> dims_;  // by symbol of layers: the steps, and the rows that steps see
  using Entered = std::map<std::pair<ValueId, int32_t>, ValueId>;  // by value from outside and order
  Entered rows_, sequences_;
};

}  // namespace tenon::host
