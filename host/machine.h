// The gradient machine: a topology bound to a ParameterSet and a device. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/parameter_set.h"
#include "core/topology.h"
#include "host/array_view.h"
#include "host/device.h"
#include "host/lowering.h"
#include "host/planner.h"

namespace tenon {

struct MachineOptions {
  tn_dtype compute = TN_F32;
  int64_t max_samples = 0;
  bool training = false;
  bool keep_all = false;
  uint64_t seed = 0;
  // Parameters without gradient and buffers that keep their values; a name means everything below it too.
  std::vector<std::string> immutable;
};

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

class Machine {
 public:
  Machine(Topology topology, std::shared_ptr<ParameterSet> set, Registry& registry, std::shared_ptr<Device> device,
          const tn_parallel* parallel, const MachineOptions& options);

  // Checks everything that is fed, then runs. On failure the outputs are those of no minibatch.
  void forward(const std::vector<NamedArray>& feeds);
  // Adds to the gradients since the last update. On failure these are dropped. Once for each forward, whose values it
  // overwrites.
  void backward();

  [[nodiscard]] int64_t samples() const { return samples_; }
  [[nodiscard]] double cost() const;  // summed over the cost outputs, each the mean over samples
  // TN_NOT_KEPT where the layer's value was not kept, naming how to keep it.
  [[nodiscard]] ArrayView output(const Expression& expression) const;
  [[nodiscard]] ArrayView gradient(const std::string& parameter) const;
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
  // Ends a step: buffers (of `model`, or all) take their next values, and new gradients begin.
  void commit(const Topology* model = nullptr);

  [[nodiscard]] nlohmann::json describe() const;

 private:
  struct Sections {  // offsets into memory_, bytes
    uint64_t control = 0, feeds = 0, gradients = 0, arena = 0, workspace = 0, total = 0;
  };
  struct Control;

  void compile(Registry& registry, const MachineOptions& options);
  void add_costs(Graph& graph);
  [[nodiscard]] bool is_frozen(const std::string& name) const;
  void check_parameters() const;
  void check_immutable() const;
  std::vector<ValueId> kept_values(const Graph& graph, bool keep_all) const;
  void differentiate_parameters(Graph& graph);
  ValueId own_value(Graph& graph, ValueId value) const;
  uint64_t place_gradients();
  void allocate(const MemoryPlan& plan, uint64_t gradient_bytes);
  void bind(const MemoryPlan& plan);
  int64_t check_feeds(const std::vector<NamedArray>& feeds) const;
  void check_indices(const Feed& feed, const ArrayView& array) const;
  void begin_step(int64_t samples);
  [[nodiscard]] double scalar(ValueId value) const;
  [[nodiscard]] ArrayView view(ValueId value) const;
  [[nodiscard]] bool is_kept(ValueId value) const;

  Topology topology_;
  std::shared_ptr<ParameterSet> set_;
  std::shared_ptr<Device> device_;
  const tn_parallel* parallel_;
  MachineOptions options_;
  std::vector<int64_t> bounds_;  // per symbol

  Lowered lowered_;  // its graph has moved into calls_
  ValueId inverse_samples_ = kNoValue;
  std::vector<std::pair<ValueId, ValueId>> costs_;  // per sample, mean
  std::vector<ValueId> kept_;
  struct PlacedGradient {
    ValueId value = kNoValue;
    size_t entry = 0;     // of the set
    uint64_t offset = 0;  // bytes into the gradients
  };
  std::vector<PlacedGradient> gradients_;  // in the order of the set
  std::unique_ptr<CallArray> calls_;
  Sections sections_;
  MemoryPlan memory_plan_;
  DeviceMemory memory_;
  Control* control_ = nullptr;
  ErrorSink errors_;
  tn_execution execution_ = {};
  int64_t samples_ = -1;  // of the last forward; -1: none, or it failed
  bool fresh_ = false;    // a forward succeeded, and no backward has overwritten its values yet
  bool accumulated_ = false;
};

}  // namespace tenon
