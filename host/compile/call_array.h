// The flat array of the prepared calls of a graph. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/work.h"
#include "host/compile/aligned_operands.h"
#include "host/compile/checks.h"
#include "host/compile/final_parts.h"
#include "host/compile/host_tables.h"
#include "host/compile/loop_calls.h"
#include "host/compile/lowering/captures.h"
#include "host/plugins/device.h"
#include "host/plugins/error_sink.h"

namespace tenon::host {

using namespace core;

// [{kernel, plugin, reason, score}]; a provider has no score.
[[nodiscard]] nlohmann::json to_json(const std::vector<PassedOver>& kernels);

enum class Phase { kOnce, kForward, kBackward };

// The calls of a machine. Built in three steps: construct (prepares every call), bind memory to every value, seal.
class CallArray : base::NotCopied {
 public:
  // bounds[symbol]: the largest size; kept: values that are read after the last call. Errors name the layers that a
  // call computes.
  CallArray(Graph graph, std::shared_ptr<Device> device, std::vector<int64_t> bounds, const std::vector<ValueId>& kept,
            Checks checks);

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] uint64_t workspace_bytes() const { return workspace_bytes_; }
  // Whether there are calls of Phase::kOnce.
  [[nodiscard]] bool has_once() const { return once_calls_ > 0; }
  // Rows whose number a call writes are `bound` at most; resize sets their shapes to the bound until the call has run.
  void expect_rows(int32_t symbol, const Dim& bound);

  void bind(ValueId value, void* memory) {
    tensors_[static_cast<size_t>(value)].dl.data = memory;
    ++bindings_;
  }
  // Binds a TN_ROW_SPARSE value. `rows` must outlive the calls.
  void bind_rows(ValueId value, void* values, const tn_row_sparse* rows);
  void seal(const SealedMemory& sealed);
  [[nodiscard]] void* memory(ValueId value) const { return tensors_[static_cast<size_t>(value)].dl.data; }

  // Returns the most rows that one backward can write to a TN_ROW_SPARSE value: the number of all ids. symbols[symbol]:
  // the sizes.
  [[nodiscard]] int64_t contributions(ValueId rows, const std::vector<int64_t>& symbols) const;
  // Sets the sizes of all shapes to those of symbols[symbol].
  void resize(const std::vector<int64_t>& symbols);
  // Sets the request of the output that writes `value`.
  void request(ValueId value, uint8_t request);
  // Runs the calls of the phase in order. execution.errors must be that of `errors`, execution.symbols and stream those
  // of seal. Those of kOnce are to run before a forward if the values that they read have changed.
  void run(Phase phase, const tn_execution& execution, ErrorSink& errors);
  // Cuts a section of memory of values into the parts of which the backward is done at the same call.
  [[nodiscard]] std::vector<FinalPart> final_parts(std::span<const std::byte> section) const;
  // The same for the backward, on a device that has computed when a run returns: calls `final` for each part of
  // final_parts() as soon as it is final, between two calls.
  void run_backward(const tn_execution& execution, ErrorSink& errors, const std::vector<FinalPart>& parts,
                    const std::function<void(const FinalPart&)>& final);

  // The same, with a wait after each call: names the component of a failure that comes later than its run. The sizes
  // that calls write are to be as before the run.
  void run_stepwise(Phase phase, const tn_execution& execution, ErrorSink& errors);

  // Whether the device records work, and how often a recording was enqueued.
  [[nodiscard]] std::optional<uint64_t> launches() const {
    return captures_ == nullptr ? std::nullopt : std::optional(captures_->launches());
  }

  // One object per call: phase, layers, call, kernel, operations, reads and writes in bytes at the bounds; with
  // Checks::time also `measured`, over all runs.
  [[nodiscard]] nlohmann::json describe() const;
  // One object per value that a forward call writes and a backward call reads: layer, value, bytes at the bounds.
  [[nodiscard]] nlohmann::json describe_saved() const;
  // Whether no forward call has TN_TRAIT_BATCH_VARIANT: a sample's answers have the same bits beside any other samples.
  [[nodiscard]] bool is_batch_invariant() const;
  // Whether all calls have the trait portable.
  [[nodiscard]] bool is_portable() const;

 private:
  struct Measured {
    int64_t runs = 0;
    double seconds = 0;
    Work work;
  };
  struct Call {
    size_t node = 0;
    std::string kernel;
    Prepared prepared;
    std::vector<const tn_tensor*> inputs;
    std::vector<tn_tensor*> outputs;
    std::vector<uint8_t> requests;
    std::vector<int32_t> rows;  // symbols of the rows whose number it writes
    bool of_host = false;       // it makes the tables of steps, or of rows that steps see, here in the host
    tn_call call = {};
    std::unique_ptr<AlignedOperands> aligned;  // null: it takes its operands as they are
    Measured measured = {};                    // with Checks::time
  };
  // A call that needs no check and no work of the host behind it: what running it reads, side by side with its
  // neighbours, since the host's part of a call is little more than such reads.
  struct BareCall {
    tn_status (*run)(void*, const tn_execution*, const tn_call*) = nullptr;  // null: run_call runs it
    void* binding = nullptr;
    const tn_call* call = nullptr;
    PluginCall record = {};
  };
  void make_tensors();
  void make_bare();
  // The calls of a phase: [first, last).
  struct Range {
    size_t first, last;
  };
  [[nodiscard]] Range range(Phase phase) const;
  [[nodiscard]] bool watched(const Call& call) const;
  void find_recordable(Phase phase);
  [[nodiscard]] Captures::Key key_of(Phase phase) const;
  void prepare(size_t number);
  void align(Call& call, const LoopCalls& loop);
  void add_memory(const Node& memory);
  void make_ragged();
  void set_shapes(int32_t symbol, const int64_t* symbols);
  void settle(const Call& call, int32_t symbol);
  // Returns the loop whose calls those of a node in `loop` are; begins it with the next call if it is a new one.
  LoopCalls* enter_loop(int32_t loop);
  // Runs calls [first, last), which `around` is around, null for none: those of the loops among them at each step.
  void run_loops(size_t first, size_t last, const LoopCalls* around, Phase phase, const tn_execution& execution,
                 ErrorSink& errors);
  // Runs calls [first, last) in order.
  void run_calls(size_t first, size_t last, Phase phase, const tn_execution& execution, ErrorSink& errors);
  void run_call(Call& call, Phase phase, const tn_execution& execution, ErrorSink& errors);
  void run_watched(const Call& call, Phase phase, const tn_execution& execution, ErrorSink& errors);
  // The native call whose operands are checked while it runs; null if they are not.
  [[nodiscard]] const NativeCall* checked_operands(const Call& call) const;
  void bind_tables();
  void make_tables(const Node& node);
  void fill_tables(const Node& node);
  [[nodiscard]] std::string who(const Node& node, const std::string& first = {}) const;
  void check_given() const;
  void check_finite(const Call& call) const;

  Graph graph_;
  std::shared_ptr<Device> device_;
  std::vector<int64_t> bounds_;
  std::vector<tn_tensor> tensors_;            // one per value
  std::vector<std::vector<int64_t>> shapes_;  // current sizes; tensors_ point here
  struct Ragged {
    std::vector<int64_t> capacity;
    std::vector<int64_t*> offsets;
    tn_ragged ragged = {};
  };
  std::map<int32_t, Ragged> ragged_;               // by ragged symbol; tensors_ point here
  std::map<int32_t, Dim> expected_rows_;           // by symbol of rows whose number a call writes: the bound
  std::map<ValueId, int32_t> counted_;             // symbol by the value that holds its number of rows
  std::vector<ValueId> varying_;                   // values with a symbolic dimension
  std::vector<std::pair<size_t, size_t>> makers_;  // per value: the call and the output that write it; call ~0: none
  std::deque<Call> calls_;                         // those of Node::once, the other forward calls, the backward calls
  size_t once_calls_ = 0;
  size_t forward_calls_ = 0;             // with those of Node::once
  std::vector<BareCall> bare_;           // one per call
  std::vector<int32_t> steps_of_;        // per value: the loop within whose steps it lives
  std::vector<StepSchedule> schedules_;  // per order
  std::deque<LoopCalls> loops_;          // each after the one around it, in the order of their calls
  LoopCalls* loop_ = nullptr;            // while calls are prepared: that of the node at hand
  SealedMemory sealed_ = {};
  HostTables tables_;
  Checks checks_;
  bool stepwise_ = false;
  struct Recordable {
    bool calls = false;       // all calls of the phase may be recorded
    bool host_sizes = false;  // one of them for its sizes only
  };
  std::array<Recordable, 3> recordable_;  // by phase
  std::unique_ptr<Captures> captures_;    // null: the device does not record
  uint64_t bindings_ = 0;                 // rises when an operand moves
  uint64_t workspace_bytes_ = 0;
};

}  // namespace tenon::host
