// The scans of topologies: which layers are inside of one, and the layers where values enter and leave.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/topology.h"
#include "host/layers/ragged_symbols.h"

namespace tenon::host {

using namespace core;

// Returns the innermost scan that a layer with these inputs is inside of, null for none. Throws TN_INVALID, without the
// layer, if the inputs are of two scans of which none is inside of the other, or of one that has ended.
[[nodiscard]] ScanRef scan_of(const std::vector<LayerOutput>& inputs);

// Returns the spec of an input as layers inside of `scan` see it. One value per sequence from outside is read at each
// step, and sequences from outside are read whole, those that the scan goes through too. Throws TN_INVALID, naming the
// subject, for any other value from outside.
[[nodiscard]] Spec in_steps(Scan& scan, const LayerOutput& input, const SubjectName& subject, RaggedSymbols& symbols);

// Throws, without the layer, if a layer that was planned inside of a scan does not compute each step by itself.
void check_inside(const Layer& layer, const SymbolNames& names);

// How a memory begins.
struct MemoryStart {
  std::vector<int64_t> shape;  // of one sequence; without meaning if there is an initial value
  LayerOutput initial;         // one value per sequence, or none
  double value = 0;            // of all elements if there is none
  bool carry = false;          // with what the minibatch before left for the sample of the same number, at first zeros
};

// A scan that an application is building. Errors name the scan, and the layers that do not fit.
class OpenScan {
 public:
  // Begins a scan over sequences, of two levels over the sub-sequences. Over those that the steps of another scan see
  // it is inside of that. Borrows `symbols`.
  OpenScan(const std::string& name, const LayerOutput& over, bool reverse, RaggedSymbols& symbols);

  [[nodiscard]] const ScanRef& scan() const { return scan_; }
  // Whether these are the sequences that it was begun with.
  [[nodiscard]] bool is_over(const LayerOutput& sequences) const;
  // Returns the layer whose values are a row of `sequences` at each step: of two levels a sub-sequence. An empty name
  // is generated, here and below.
  [[nodiscard]] LayerRef input(const std::string& name, const LayerOutput& sequences);
  // Returns the layer whose values are those that the step before left.
  [[nodiscard]] LayerRef memory(const std::string& name, MemoryStart start);
  // States what a step leaves in a memory. Throws TN_INVALID if it is stated already, or of another shape.
  void next(const LayerOutput& memory, const LayerOutput& value);
  // Ends the scan: no layers can join it any more. Throws TN_INVALID, and leaves it open, if nothing was stated to be
  // left in a memory.
  [[nodiscard]] LayerRef end(std::vector<LayerOutput> results);
  // The same for a scan that was saved: with all memories, in the order of their last values, and what is left in each.
  [[nodiscard]] LayerRef end(std::vector<LayerOutput> results,
                             const std::vector<std::pair<LayerOutput, LayerOutput>>& memories);

 private:
  void require_open() const;
  // Whether a value is from outside: from a scan around, or of none.
  [[nodiscard]] bool is_outside(const LayerOutput& output) const;
  [[nodiscard]] std::string own(const std::string& name, const char* kind, size_t number) const;
  [[nodiscard]] Layer part(const std::string& name, ScanPart part, std::vector<LayerOutput> inputs) const;
  [[nodiscard]] Spec carried(const std::string& memory, const MemoryStart& start, Spec spec) const;
  [[nodiscard]] size_t number_of(const LayerOutput& memory) const;
  // Returns the spec outside of a result with this spec inside.
  [[nodiscard]] Spec outside(Spec spec, const Layer& result) const;

  RaggedSymbols& names_;
  ScanRef scan_;
  LayerOutput over_;
  size_t inputs_ = 0;
  std::set<int32_t> inner_;                                 // symbols of the rows of sub-sequences that are inputs
  std::vector<std::pair<LayerRef, LayerOutput>> memories_;  // and what is left in each
};

}  // namespace tenon::host
