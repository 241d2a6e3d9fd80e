// Records the scans of a body. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::host {

using namespace core;

// Implements the functions scan_* of tn_builder; errors say what is wrong, and the caller adds the layer.
class ScanRecorder {
 public:
  // free_symbol: the first that nothing uses before the first order of steps; nested: of the orders of the scans.
  ScanRecorder(Graph& graph, GraphWriter& writer, int32_t free_symbol, bool nested)
      : graph_(graph), writer_(writer), free_symbol_(free_symbol), nested_(nested) {}

  [[nodiscard]] bool is_open() const { return loop_ >= 0; }
  Dim begin(const Dim& rows, uint32_t flags);
  ValueId input(ValueId value);
  // spec: of one sequence; initial: kNoValue: zeros.
  ValueId memory(Spec spec, ValueId initial);
  void next(ValueId memory, ValueId next);
  void end();
  [[nodiscard]] ValueId last(ValueId memory) const;
  ValueId output(ValueId value) { return writer_.from_steps(value); }

 private:
  void require_open(const char* function) const;

  Graph& graph_;
  GraphWriter& writer_;
  const int32_t free_symbol_;
  const bool nested_;
  int32_t loop_ = -1;                                  // of the scan that is recorded; -1: none
  std::vector<std::pair<ValueId, ValueId>> memories_;  // of that scan, and what each is left
  std::map<ValueId, ValueId> last_;                    // by memory of a scan that has ended
};

}  // namespace tenon::host
