// From a primitive graph to one flat array of prepared calls and one arena. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/graph.h"
#include "host/plugins/device.h"
#include "host/plugins/error_sink.h"

namespace tenon {

// Where the values of a graph lie in the arena.
struct MemoryPlan {
  static constexpr uint64_t kNotHere = ~uint64_t{0};
  std::vector<uint64_t> offsets;  // per value, from the start of the arena; kNotHere for values with other memory
  uint64_t bytes = 0;             // of the arena
  uint64_t live_bound = 0;        // the most that is live at one moment: no plan can need less
};

// placed[value]: it has memory of its own (a feed, a parameter, a gradient). kept: must stay readable after the last
// node. A value lives from its node to the last one that reads it or a view of it; what a pointwise node reads for the
// last time gives its memory to an output of equal extent and size.
[[nodiscard]] MemoryPlan plan_memory(const Graph& graph, const std::vector<bool>& placed,
                                     const std::vector<ValueId>& kept, const std::vector<int64_t>& bounds);

// Bytes of a value at the bounds, rounded up to whole cache lines.
[[nodiscard]] uint64_t bytes_of(const Spec& spec, const std::vector<int64_t>& bounds);

// Whether the device would rather run `pointwise` as the epilogue of `gemm`.
[[nodiscard]] bool prefers_epilogue(const Device& device, const Graph& graph, const std::vector<int64_t>& bounds,
                                    const Node& gemm, const Node& pointwise, int32_t product);

// The calls of a machine. Built in three steps: construct (prepares every call), bind every value, seal.
class CallArray {
 public:
  // Errors name the layers that a call serves.
  CallArray(Graph graph, std::shared_ptr<Device> device, std::vector<int64_t> bounds);
  CallArray(const CallArray&) = delete;
  CallArray& operator=(const CallArray&) = delete;

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] uint64_t workspace_bytes() const { return workspace_bytes_; }

  void bind(ValueId value, void* memory) { tensors_[static_cast<size_t>(value)].dl.data = memory; }
  // A TN_ROWS value; `rows` outlives the calls.
  void bind_rows(ValueId value, void* values, const tn_rows* rows);
  void seal(void* workspace);
  [[nodiscard]] void* memory(ValueId value) const { return tensors_[static_cast<size_t>(value)].dl.data; }

  // The most rows that go into a TN_ROWS value, by the sizes of the symbols.
  [[nodiscard]] int64_t contributions(ValueId rows, const std::vector<int64_t>& symbols) const;
  // Puts new sizes into every shape. symbols[symbol].
  void resize(const std::vector<int64_t>& symbols);
  // Sets the request of the output that writes `value`.
  void request(ValueId value, uint8_t request);
  // Runs the forward or the backward calls in order. execution.errors is `errors`.
  void run(bool backward, const tn_execution& execution, ErrorSink& errors) const;

  // One object per call: phase, layers, call, kernel, operations, reads and writes in bytes at the bounds.
  [[nodiscard]] nlohmann::json describe() const;
  // What the forward calls make and the backward ones read: one object per value: layer, value, bytes at the bounds.
  [[nodiscard]] nlohmann::json describe_saved() const;

 private:
  struct Call {
    size_t node = 0;
    std::string kernel;
    Prepared prepared;
    std::vector<const tn_tensor*> inputs;
    std::vector<tn_tensor*> outputs;
    std::vector<uint8_t> requests;
    tn_call call = {};
  };
  void make_tensors();
  void prepare(size_t node);
  void prepare_pointwise(const Node& node, Call& call, ErrorSink& errors);
  void prepare_gemm(const Node& node, Call& call, ErrorSink& errors);
  void prepare_gather(const Node& node, Call& call, ErrorSink& errors);
  void prepare_move(const Node& node, Call& call, ErrorSink& errors);
  void prepare_segment(const Node& node, Call& call, ErrorSink& errors);
  void prepare_coalesce(const Node& node, Call& call, ErrorSink& errors);
  void prepare_native(const Node& node, Call& call, ErrorSink& errors);
  void make_ragged();
  template <typename Table>
  const Table& table(const char* id) const;
  template <typename Function, typename Site>
  void prepare_by(Function* function, const Site* site, Call& call, ErrorSink& errors) const;
  [[nodiscard]] std::string who(const Node& node) const;

  Graph graph_;
  std::shared_ptr<Device> device_;
  std::vector<int64_t> bounds_;
  std::vector<tn_tensor> tensors_;                 // one per value
  std::vector<std::vector<int64_t>> shapes_;       // current sizes; the tensors point in here
  std::map<int32_t, tn_ragged> ragged_;            // by symbol of the rows; the tensors point in here
  std::vector<ValueId> varying_;                   // values with a symbolic dimension
  std::vector<std::pair<size_t, size_t>> makers_;  // per value: call, output; call ~0: none
  std::deque<Call> calls_;
  uint64_t workspace_bytes_ = 0;
};

}  // namespace tenon
