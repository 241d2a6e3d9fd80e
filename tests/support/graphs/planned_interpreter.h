// An interpreter of primitive graphs that reuses memory exactly as planned.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "host/compile/memory_plan.h"
#include "tests/support/graphs/graph_interpreter.h"

namespace tenon_tests {

using namespace tenon::host;

// Runs a graph in one arena laid out by a plan; values that are `placed` have memory of their own. It behaves like the
// worst device that keeps the contract: of the inputs that share memory with an output it first reads one of equal
// extent and element size, then overwrites all outputs, and then reads the other inputs. The bytes of values that are
// not live are 0xFF.
class PlannedInterpreter {
 public:
  PlannedInterpreter(const Graph& graph, std::vector<int64_t> symbols, const MemoryPlan& plan,
                     const std::vector<bool>& placed, const std::vector<ValueId>& kept);

  void write(ValueId value, const Numbers& numbers);
  [[nodiscard]] Numbers read(ValueId value) const;
  // Runs the forward or the backward nodes. Throws if a value has no memory, or if two outputs share it.
  void run(bool backward);
  // The number of outputs that were written to the memory of an input, or of the product of their node.
  [[nodiscard]] size_t in_place() const { return in_place_; }

 private:
  [[nodiscard]] std::byte* memory(ValueId value) const;
  [[nodiscard]] size_t bytes(ValueId value) const;
  void poison(ValueId value);
  [[nodiscard]] std::vector<Numbers> read_inputs(const Node& node);
  [[nodiscard]] bool may_share(const Node& node, size_t input, size_t output) const;
  void check_epilogue(const Node& node) const;
  void step(size_t number);
  void free_after(size_t number);

  const Graph& graph_;
  const std::vector<int64_t> symbols_;
  std::vector<std::byte*> memory_;  // by value; null: none
  mutable std::vector<std::byte> arena_;
  std::vector<std::vector<std::byte>> own_;  // of values that are not in the arena
  std::vector<size_t> last_;                 // by root: the last node that uses it
  size_t in_place_ = 0;
};

}  // namespace tenon_tests
