// The calls of a loop: the tensors that they see, which move from step to step. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "host/compile/host_tables.h"
#include "host/compile/step_schedule.h"
#include "host/plugins/host_access.h"

namespace tenon::host {

using namespace core;

// What all calls of a machine share while they run. Borrowed. The sizes of the run, which the calls of loops see
// changed, are there twice: as the host writes them, and as calls read them. It is the same memory if the host
// addresses the device's.
struct SealedMemory {
  void* workspace = nullptr;  // of the device
  int64_t* symbols = nullptr;
  int64_t* device_symbols = nullptr;
  HostAccess* access = nullptr;

  // Copies the first `count` sizes to where calls read them.
  void put_symbols(size_t count) const {
    if (!access->is_direct()) access->write(device_symbols, symbols, count * sizeof(int64_t));
  }
  // Copies the size that a call has written to where the host reads it.
  void take_symbol(int32_t symbol) const {
    if (!access->is_direct()) access->read(symbols + symbol, device_symbols + symbol, sizeof(int64_t));
  }
};

class LoopCalls {
 public:
  // first: number of the first call of the loop; around: the loop within whose steps it runs, or null; bounds[symbol]:
  // the largest size. Borrows all but the numbers.
  LoopCalls(const Graph& graph, int32_t loop, size_t first, LoopCalls* around, const std::vector<int32_t>& steps_of,
            const std::vector<int64_t>& bounds);

  // Returns the tensor by which a call of the loop sees `value`, which is `whole` outside of it: a part of it if it has
  // elements of each step, such as rows of the sequences that steps see. Tables of the elements of a step, such as the
  // offsets of such rows, have the numbers that these have within the step.
  tn_tensor* tensor(ValueId value, tn_tensor& whole);
  // Adds a memory, whose states hold its initial values before the first step. initial: as the nodes around the loop
  // see it; null: zeros.
  void add_memory(const Node& memory, const tn_tensor* initial) { memories_.emplace_back(&memory, initial); }
  // Adds a value to whose first rows each step adds; it is zero before the first step.
  void add_sum(ValueId value) { sums_.emplace_back(value, nullptr); }
  // Counts a call, of the loops around too.
  void count_call();
  [[nodiscard]] size_t first() const { return first_; }
  [[nodiscard]] size_t calls() const { return calls_; }
  [[nodiscard]] int32_t number() const { return loop_; }
  [[nodiscard]] LoopCalls* around() const { return around_; }

  using MemoryOf = std::function<void*(ValueId value)>;
  // Takes the memory of all values. Borrows the tables.
  void bind(const MemoryOf& memory, const HostTables& tables, const SealedMemory& sealed);
  // Copies the initial values of memories into their states and clears sums, then calls step() for each step in order,
  // of a loop with another around for those within the step of that. symbols: the sizes of `steps` and of the rows that
  // steps see are those of the step meanwhile.
  template <typename Step>
  void run(const StepSchedule& schedule, int64_t* symbols, const Step& step) {
    const StepRange range = around_ == nullptr ? schedule.all() : schedule.within(around_->step_);
    begin(range, symbols);
    for (int64_t i = 0; i < range.steps; ++i) {
      move_to(schedule, range.first_step + (backward() ? range.steps - 1 - i : i), symbols);
      step();
    }
    end(range, symbols);
  }
  [[nodiscard]] int32_t order_number() const;

 private:
  // kFirst: at its first element, at every step.
  enum class Place : uint8_t { kFirst, kOfStep, kBefore };
  // The elements of the dimension of a symbol that belong to the step.
  struct Part {
    int32_t symbol = 0;
    const StepRows* rows = nullptr;    // whose rows they are; null: one for each sequence that runs
    const int64_t* offsets = nullptr;  // of these rows
    int64_t first = 0, count = 0;
  };
  // A table of int64 with an element for each element of a part, or one more; its numbers are those of another part.
  struct StepTable {
    ValueId value = kNoValue;
    const Part *of = nullptr, *into = nullptr;  // into: null: of what has no part of the step
    int64_t more = 0;                           // elements beside those of the part
    const int64_t* whole = nullptr;             // the table of all steps
    int64_t most = 0;                           // elements
    Buffer of_step;
    DeviceMemory memory;  // of the tensor, if the device cannot read `of_step`
    int64_t size = 0;
    tn_tensor tensor = {};
  };
  struct StepTensor {
    tn_tensor tensor = {};
    std::vector<int64_t> shape;
    ValueId value = kNoValue;
    const Part* part = nullptr;
    Place place = Place::kFirst;
    int64_t rows = 1;       // for each element of the part
    int64_t row_bytes = 0;  // of all of them
    std::byte* base = nullptr;
  };
  struct States {
    std::byte* states = nullptr;
    const tn_tensor* initial = nullptr;  // null: zeros
    const int64_t* places = nullptr;     // by sequence: its state
    int64_t row_bytes = 0;
  };
  [[nodiscard]] const StepOrder& order() const { return graph_.orders[static_cast<size_t>(order_number())]; }
  [[nodiscard]] bool backward() const { return graph_.loops[static_cast<size_t>(loop_)].backward; }
  [[nodiscard]] Place place_of(ValueId value) const;
  [[nodiscard]] int64_t row_bytes(ValueId value) const;
  [[nodiscard]] const Part* part_of(const Dim& dim);
  const Part* add_part(int32_t symbol, const StepRows* rows);
  tn_tensor* table(ValueId value, const tn_tensor& whole);
  tn_tensor* add_table(ValueId value, const tn_tensor& whole, const Dim& of, const Dim& into);
  void begin(const StepRange& range, const int64_t* symbols) const;
  void move_to(const StepSchedule& schedule, int64_t t, int64_t* symbols);
  void end(const StepRange& range, int64_t* symbols) const;

  const Graph& graph_;
  const int32_t loop_;
  const size_t first_;
  LoopCalls* const around_;
  size_t calls_ = 0;
  int64_t step_ = 0;  // that runs
  const std::vector<int32_t>& steps_of_;
  const std::vector<int64_t>& bounds_;
  std::vector<std::pair<const Node*, const tn_tensor*>> memories_;  // and their initial values
  std::vector<std::pair<ValueId, std::byte*>> sums_;                // and their memory
  std::deque<StepTensor> tensors_;                                  // a deque keeps their addresses
  std::map<ValueId, StepTensor*> by_value_;
  std::deque<Part> parts_;
  std::deque<StepTable> tables_;
  std::vector<States> states_;
  SealedMemory sealed_ = {};
};

}  // namespace tenon::host
