// The gradient machine: a topology bound to a ParameterSet and a device. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "core/parameter_set.h"
#include "core/topology.h"
#include "host/compile/call_array.h"
#include "host/compile/lowering.h"
#include "host/plugins/device.h"

namespace tenon {

struct MachineOptions {
  tn_dtype compute = TN_F32;
  int64_t max_samples = 0;
  bool training = false;
  bool keep_all = false;
  uint64_t seed = 0;  // of draws; the step is the number of updates that the set had, 0 where not training
  // Parameters without gradient and buffers that keep their values; a name means everything below it too.
  std::vector<std::string> immutable;
  int64_t max_rows = 0;  // bound of every dimension of rows that is fed; 0: grows as needed
};

// What is fed to a forward: copied, or lent until the next forward, and unchanged until then.
enum class Feeding { kCopied, kLent };

// Parameters that lie behind one another, in the set and in the machine's gradients alike, with equal multipliers.
struct GradientRun {
  float* parameters = nullptr;
  const void* gradients = nullptr;
  tn_dtype gradient_dtype = TN_F32;
  size_t slab = 0;        // of the set
  uint64_t offset = 0;    // elements into the slab
  uint64_t elements = 0;  // padding between entries included
  double rate_multiplier = 1, decay_multiplier = 1;
  std::vector<size_t> entries;  // numbers in the set
};

// The gradient of one parameter as rows: device memory of {count, ids, values}.
struct RowsGradient {
  ValueId value = kNoValue;
  size_t entry = 0;    // of the set
  int64_t height = 0;  // rows of the parameter
  int64_t width = 0;   // elements of a row
  tn_dtype dtype = TN_F32;
  tn_rows rows = {};
  void* values = nullptr;
  uint64_t bytes = 0;
  DeviceMemory memory;
};

// The parameters and buffers of a model, or all that there are.
class Used {
 public:
  explicit Used(const Topology* model);  // null: all
  [[nodiscard]] bool contains(const std::string& name) const { return all_ || names_.contains(name); }

 private:
  bool all_;
  std::set<std::string> names_;
};

// Over a set without values it asks for no memory, and can be described but not run.
class Machine {
 public:
  Machine(Topology topology, std::shared_ptr<ParameterSet> set, Registry& registry, std::shared_ptr<Device> device,
          const tn_parallel* parallel, const MachineOptions& options);

  // Checks everything that is fed, then runs. On failure the outputs are those of no minibatch.
  void forward(const std::vector<NamedArray>& feeds, Feeding feeding = Feeding::kCopied);
  // Adds to the gradients since the last update. On failure these are dropped. Once for each forward, whose values it
  // overwrites.
  void backward();

  [[nodiscard]] int64_t samples() const { return samples_; }
  [[nodiscard]] double cost() const;  // summed over the cost outputs, each the mean over samples
  // TN_NOT_KEPT where the layer's value was not kept, naming how to keep it.
  [[nodiscard]] ArrayView output(const Expression& expression) const;
  // Of a gradient of rows a dense copy.
  [[nodiscard]] ArrayView gradient(const std::string& parameter);
  struct RowsView {
    ArrayView ids, values;
  };
  // TN_INVALID where it is dense.
  [[nodiscard]] RowsView gradient_rows(const std::string& parameter) const;
  // What the metric added up over the last minibatch.
  [[nodiscard]] std::vector<double> metric_state(const LayerRef& metric) const;
  [[nodiscard]] const std::vector<MetricUse>& metrics() const { return lowered_.metrics; }
  [[nodiscard]] bool has_cost() const { return !costs_.empty(); }

  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const std::shared_ptr<ParameterSet>& set() const { return set_; }
  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  [[nodiscard]] const tn_parallel* parallel() const { return parallel_; }

  // For updaters. Whether backward has run since the last update.
  [[nodiscard]] bool has_gradients() const { return accumulated_; }
  // All of them, or those that `model` uses.
  [[nodiscard]] std::vector<GradientRun> gradient_runs(const Topology* model = nullptr) const;
  // Those of rows, likewise; borrowed until the next call on this machine.
  [[nodiscard]] std::vector<const RowsGradient*> rows_gradients(const Topology* model = nullptr) const;
  // Ends a step: buffers (of `model`, or all) take their next values, and new gradients begin.
  void commit(const Topology* model = nullptr);

  [[nodiscard]] nlohmann::json describe() const;

 private:
  struct Sections {  // offsets into memory_, bytes
    uint64_t control = 0, feeds = 0, gradients = 0, arena = 0, workspace = 0, total = 0;
  };

  // row_bounds: by symbol, where they are not the first ones.
  Machine(Topology topology, std::shared_ptr<ParameterSet> set, Registry& registry, std::shared_ptr<Device> device,
          const tn_parallel* parallel, const MachineOptions& options, std::map<int32_t, int64_t> row_bounds);
  void compile(const MachineOptions& options);
  void set_bounds();
  void reserve(const std::vector<int64_t>& symbols);
  void adopt(Machine& larger);
  void add_costs(Graph& graph);
  void check_costs() const;
  [[noreturn]] void refuse_untrained(const Layer& cost) const;
  ValueId inverse_of(Graph& graph, int32_t symbol);
  [[nodiscard]] bool is_frozen(const std::string& name) const;
  void check_parameters() const;
  void check_immutable() const;
  std::vector<ValueId> kept_values(const Graph& graph, bool keep_all) const;
  void differentiate_parameters(Graph& graph);
  uint64_t place_gradients(const Graph& graph);
  void place_rows(const ParameterUse& use);
  void resize_rows(RowsGradient& gradient, int64_t capacity);
  void reserve_rows(RowsGradient& gradient);
  [[nodiscard]] const ParameterUse& differentiated(const std::string& parameter) const;
  [[nodiscard]] ArrayView dense_copy(const RowsGradient& gradient);
  [[nodiscard]] std::vector<ValueId> fed_values() const;
  void lay_out(const MemoryPlan& plan, uint64_t gradient_bytes);
  void bind(const MemoryPlan& plan);
  [[nodiscard]] std::vector<int64_t> check_feeds(const std::vector<NamedArray>& feeds) const;
  int64_t check_dense(const Feed& feed, const ArrayView& array) const;
  void check_samples(const Feed& feed, int64_t samples) const;
  int64_t check_rows(const Feed& feed, const ArrayView& array, std::vector<int64_t>& symbols) const;
  void check_indices(const Feed& feed, const ArrayView& array) const;
  void check_shared(const std::vector<NamedArray>& feeds, const std::vector<int64_t>& symbols) const;
  void begin_step(const std::vector<int64_t>& symbols);
  void take_feed(const Feed& feed, const ArrayView& array, Feeding feeding);
  void take(ValueId value, const void* from, uint64_t bytes, Feeding feeding);
  void join_rows();
  [[nodiscard]] int64_t size_of(const Dim& dim) const { return tn_dim_value(&dim, symbols_.data()); }
  [[nodiscard]] double scalar(ValueId value) const;
  [[nodiscard]] ArrayView view(ValueId value) const;
  [[nodiscard]] bool is_kept(ValueId value) const;

  Topology topology_;
  std::shared_ptr<ParameterSet> set_;
  Registry* registry_;
  std::shared_ptr<Device> device_;
  const tn_parallel* parallel_;
  MachineOptions options_;
  std::map<int32_t, int64_t> row_bounds_;  // of rows that grew
  std::vector<int64_t> bounds_;            // per symbol

  Lowered lowered_;                                 // its graph has moved into calls_
  std::map<int32_t, ValueId> inverses_;             // symbol -> 1 / its size
  std::vector<std::pair<ValueId, ValueId>> costs_;  // per sample, mean
  std::vector<ValueId> kept_;
  struct PlacedGradient {
    ValueId value = kNoValue;
    size_t entry = 0;     // of the set
    uint64_t offset = 0;  // bytes into the gradients
  };
  std::vector<PlacedGradient> gradients_;  // in the order of the set
  std::vector<std::unique_ptr<RowsGradient>> rows_gradients_;
  std::unique_ptr<CallArray> calls_;
  Sections sections_;
  MemoryPlan memory_plan_;
  DeviceMemory memory_;
  struct FedMemory {
    std::byte* own = nullptr;    // in memory_, for what is copied
    std::vector<ValueId> views;  // the value and all that lie in its memory
  };
  std::map<ValueId, FedMemory> fed_memory_;
  // What varies per step, in memory_; kernels read it there. By symbol.
  int64_t* device_symbols_ = nullptr;
  std::byte* device_inverses_ = nullptr;  // 8 bytes each, in the compute type
  tn_random* random_ = nullptr;
  std::vector<int64_t> symbols_;  // of the last forward
  DeviceMemory dense_gradient_;   // lent by gradient
  ErrorSink errors_;
  tn_execution execution_ = {};
  int64_t samples_ = -1;  // of the last forward; -1: none, or it failed
  bool fresh_ = false;    // a forward succeeded, and no backward has overwritten its values yet
  bool accumulated_ = false;
};

}  // namespace tenon
