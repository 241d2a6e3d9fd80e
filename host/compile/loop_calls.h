// The calls of a loop: the tensors that they see, which move from step to step. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "core/graph/graph.h"
#include "host/compile/step_schedule.h"

namespace tenon::host {

using namespace core;

class LoopCalls {
 public:
  // first: number of the first call of the loop.
  LoopCalls(const Graph& graph, int32_t loop, size_t first, const std::vector<int32_t>& steps_of);

  // Returns the tensor by which a call of the loop sees `value`, which is `whole` outside of it: a part of it if it has
  // an element for each step.
  tn_tensor* tensor(ValueId value, tn_tensor& whole);
  // Adds a memory, whose states hold its initial values before the first step.
  void add_memory(const Node& memory) { memories_.push_back(&memory); }
  void count_call() { ++calls_; }
  [[nodiscard]] size_t first() const { return first_; }
  [[nodiscard]] size_t calls() const { return calls_; }

  using MemoryOf = std::function<void*(ValueId value)>;
  // Takes the memory of all values.
  void bind(const MemoryOf& memory);
  // Copies the initial values of memories into their states, then calls step() for each step in order. symbols: the
  // size of `steps` is that of the step meanwhile.
  template <typename Step>
  void run(const StepSchedule& schedule, int64_t sequences, int64_t* symbols, const Step& step) {
    const StepOrder& order = this->order();
    begin(sequences);
    for (int64_t i = 0; i < schedule.steps(); ++i) {
      const int64_t t = backward() ? schedule.steps() - 1 - i : i;
      symbols[order.steps.symbol] = schedule.running(t);
      move_to(schedule, t);
      step();
    }
    symbols[order.steps.symbol] = schedule.elements();
  }
  [[nodiscard]] int32_t order_number() const;

 private:
  enum class Place : uint8_t { kOneStep, kOfStep, kBefore };
  struct StepTensor {
    tn_tensor tensor = {};
    std::vector<int64_t> shape;
    ValueId value = kNoValue;
    Place place = Place::kOneStep;
    int64_t row_bytes = 0;
    std::byte* base = nullptr;
  };
  struct States {
    std::byte* states = nullptr;
    const std::byte* initial = nullptr;  // null: zeros
    const int64_t* places = nullptr;     // by sequence: its state
    int64_t row_bytes = 0;
  };
  [[nodiscard]] const StepOrder& order() const { return graph_.orders[static_cast<size_t>(order_number())]; }
  [[nodiscard]] bool backward() const { return graph_.loops[static_cast<size_t>(loop_)].backward; }
  [[nodiscard]] Place place_of(ValueId value) const;
  [[nodiscard]] int64_t row_bytes(ValueId value) const;
  void begin(int64_t sequences) const;
  void move_to(const StepSchedule& schedule, int64_t t);

  const Graph& graph_;
  const int32_t loop_;
  const size_t first_;
  size_t calls_ = 0;
  const std::vector<int32_t>& steps_of_;
  std::vector<const Node*> memories_;
  std::deque<StepTensor> tensors_;  // a deque keeps their addresses
  std::map<ValueId, StepTensor*> by_value_;
  std::vector<States> states_;
};

}  // namespace tenon::host
