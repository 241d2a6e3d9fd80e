// The calls of a loop: the tensors that they see, which move from step to step. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "host/compile/step_schedule.h"

namespace tenon::host {

using namespace core;

class LoopCalls {
 public:
  // first: number of the first call of the loop; bounds[symbol]: the largest size. Borrows all but the numbers.
  LoopCalls(const Graph& graph, int32_t loop, size_t first, const std::vector<int32_t>& steps_of,
            const std::vector<int64_t>& bounds);

  // Returns the tensor by which a call of the loop sees `value`, which is `whole` outside of it: a part of it if it has
  // an element for each step, or rows of the sequences that steps see. The offsets of such rows are those of the step.
  tn_tensor* tensor(ValueId value, tn_tensor& whole);
  // Adds a memory, whose states hold its initial values before the first step.
  void add_memory(const Node& memory) { memories_.push_back(&memory); }
  // Adds a value to whose first rows each step adds; it is zero before the first step.
  void add_sum(ValueId value) { sums_.push_back({value, nullptr}); }
  void count_call() { ++calls_; }
  [[nodiscard]] size_t first() const { return first_; }
  [[nodiscard]] size_t calls() const { return calls_; }

  using MemoryOf = std::function<void*(ValueId value)>;
  // Takes the memory of all values.
  void bind(const MemoryOf& memory);
  // Copies the initial values of memories into their states and clears sums, then calls step() for each step in order.
  // symbols: the sizes of `steps` and of the rows that steps see are those of the step meanwhile.
  template <typename Step>
  void run(const StepSchedule& schedule, int64_t sequences, int64_t* symbols, const Step& step) {
    begin(sequences, symbols);
    for (int64_t i = 0; i < schedule.steps(); ++i) {
      move_to(schedule, backward() ? schedule.steps() - 1 - i : i, symbols);
      step();
    }
    end(schedule, symbols);
  }
  [[nodiscard]] int32_t order_number() const;

 private:
  // kFirst: at its first element, at every step.
  enum class Place : uint8_t { kFirst, kOfStep, kBefore };
  // The rows of further sequences that a step sees.
  struct SeenRows {
    const StepRows* of = nullptr;
    const int64_t* offsets = nullptr;  // of all steps
    std::vector<int64_t> of_step;      // those of the step
    tn_tensor offsets_tensor = {};     // of_step
    int64_t sequences_and_one = 0;     // its shape
    int64_t first = 0, count = 0;      // the rows of the step
  };
  struct StepTensor {
    tn_tensor tensor = {};
    std::vector<int64_t> shape;
    ValueId value = kNoValue;
    const SeenRows* rows = nullptr;  // whose rows it has; null: an element for each step
    Place place = Place::kFirst;
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
  SeenRows& seen(const StepRows& rows);
  static tn_tensor* offsets_of_step(SeenRows& rows, const tn_tensor& whole);
  void begin(int64_t sequences, const int64_t* symbols) const;
  void move_to(const StepSchedule& schedule, int64_t t, int64_t* symbols);
  void end(const StepSchedule& schedule, int64_t* symbols) const;

  const Graph& graph_;
  const int32_t loop_;
  const size_t first_;
  size_t calls_ = 0;
  const std::vector<int32_t>& steps_of_;
  const std::vector<int64_t>& bounds_;
  std::vector<const Node*> memories_;
  std::vector<std::pair<ValueId, std::byte*>> sums_;  // and their memory
  std::deque<StepTensor> tensors_;                    // a deque keeps their addresses
  std::map<ValueId, StepTensor*> by_value_;
  std::deque<SeenRows> rows_;
  std::vector<States> states_;
};

}  // namespace tenon::host
