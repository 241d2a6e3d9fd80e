// SPDX-License-Identifier: Apache-2.0
#include "host/compile/lowering/scan_recorder.h"

#include <algorithm>

#include "core/error.h"
#include "core/graph/loops.h"

namespace tenon::host {

void ScanRecorder::require_open(const char* function) const {
  if (!is_open()) fail(TN_PLUGIN_FAULT, function, " outside of a scan");
}

Dim ScanRecorder::begin(const Dim& rows, uint32_t flags) {
  if (is_open()) fail(TN_UNSUPPORTED, "a scan in another scan");
  check_unused(flags & ~uint32_t{TN_SCAN_REVERSE}, "flags of a scan, beside the known ones,");
  const int32_t free = next_symbol(graph_, free_symbol_);
  const int32_t order = writer_.step_order(rows, (flags & TN_SCAN_REVERSE) != 0, nested_, free);
  loop_ = static_cast<int32_t>(graph_.loops.size());
  graph_.loops.push_back({order, false});
  return graph_.orders[static_cast<size_t>(order)].steps;
}

ValueId ScanRecorder::input(ValueId value) {
  require_open("scan_input");
  return writer_.to_steps(value, graph_.loops[static_cast<size_t>(loop_)].order);
}

ValueId ScanRecorder::memory(Spec spec, ValueId initial) {
  require_open("scan_memory");
  if (spec.dtype == TN_COMPUTE) spec.dtype = writer_.compute();
  const ValueId made = writer_.memory(loop_, spec, initial);
  memories_.emplace_back(made, made);  // keeps its value
  return made;
}

void ScanRecorder::next(ValueId memory, ValueId next) {
  const auto found = std::find_if(memories_.begin(), memories_.end(), [&](const auto& m) { return m.first == memory; });
  if (found == memories_.end())
    fail(TN_PLUGIN_FAULT, "scan_next of value ", memory, ", which is no memory of the scan");
  found->second = next;
}

void ScanRecorder::end() {
  require_open("scan_end");
  for (const auto& [memory, next] : memories_) last_[memory] = writer_.end_memory(memory, next);
  if (!memories_.empty()) {
    const LoopFault fault = end_loop(graph_, loop_);
    if (!fault.reason.empty())
      fail(TN_UNSUPPORTED, "scan: a ", fault.operation, " that memories depend on ", fault.reason);
  }
  memories_.clear();
  loop_ = -1;
}

ValueId ScanRecorder::last(ValueId memory) const {
  const auto found = last_.find(memory);
  if (found == last_.end())
    fail(TN_PLUGIN_FAULT, "scan_last of value ", memory, ", which is no memory of a scan that has ended");
  return found->second;
}

}  // namespace tenon::host
