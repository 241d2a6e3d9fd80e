// The gradient machine: a topology bound to a ParameterSet and a device. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "core/parameter_set.h"
#include "core/topology.h"
#include "host/machine/compiled_model.h"
#include "host/machine/feeds.h"
#include "host/machine/gradient_runs.h"
#include "host/machine/set_gate.h"
#include "host/plugins/device.h"
#include "host/plugins/host_access.h"

namespace tenon::host {

using namespace core;

// Identifies a state of a machine's memory: pointers into it and calls prepared for it are valid while memory_id()
// returns the same object. Compared by address, which cannot be reused while a holder keeps the object.
struct MemoryId {};

class Shards;

// Compiles a topology and runs it forward and backward. Over a set without values it allocates no memory, and can be
// described but not run.
class Machine {
 public:
  Machine(Topology topology, std::shared_ptr<ParameterSet> set, Registry& registry, std::shared_ptr<Device> device,
          const tn_parallel* parallel, const MachineOptions& options);
  // A machine of several devices of one kind: each computes a shard of the minibatch, with the same parameters. A
  // device that is in the list twice computes two shards. Updaters, and whoever asks for gradients, find the sums over
  // all shards on the first device. TN_INVALID if max_samples is smaller than the list.
  Machine(const Topology& topology, std::shared_ptr<ParameterSet> set, Registry& registry,
          const std::vector<std::shared_ptr<Device>>& devices, const tn_parallel* parallel,
          const MachineOptions& options);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // The data layers, in the order in which forward takes their arrays.
  [[nodiscard]] const std::vector<Feed>& feeds() const { return model_.lowered.feeds; }
  // Checks arrays of any number of samples, in the order of feeds(), as forward does.
  void check_feeds(const std::vector<ArrayView>& arrays) const;
  // Says that the parameters have the values of this version until the next call of it, so that what a machine that
  // does not train makes of them alone is made once. Empty, as at first: they may change between forwards.
  void set_version(std::optional<uint64_t> version) { version_ = version; }
  // Checks all arrays before it changes anything, then runs. If the run fails, there are no outputs until a forward
  // succeeds.
  void forward(const std::vector<ArrayView>& arrays, FeedMode mode = FeedMode::kCopied);
  // The same while it reads the set, whose gate this is, in the version that the gate has then.
  void forward(SetGate& gate, const std::vector<ArrayView>& arrays, FeedMode mode = FeedMode::kCopied);
  // Adds to the gradients since the last update; drops them if the run fails. At most once after each forward, because
  // it overwrites the values of the forward.
  void backward();
  // The same from gradients of outputs instead of the costs, for a machine with given_gradients: gradients[i] has type
  // (or one that widens to it) and shape of outputs[i]; those that are not given are 0. Checks all arrays before it
  // changes anything.
  void backward_from(const std::vector<LayerOutput>& outputs, const std::vector<ArrayView>& gradients);
  // Replaces the gradient of a parameter since the last update by `values`, of its shape. Without a backward since the
  // last update, those of the others become 0. Throws TN_INVALID if the gradient is row-sparse.
  void set_gradient(const std::string& parameter, const ArrayView& values);
  // Returns the gradient of a data layer by the last backward, for a machine with data_gradients.
  [[nodiscard]] ArrayView data_gradient(const std::string& data_layer) const;

  // Sets the carried states to zero, as before the first forward.
  void reset_carried();
  // The states that the last forward left for the next one: one value per carried state, empty if its layer does not
  // set it or no forward has run.
  struct Carried {
    int64_t samples = 0;  // of that forward; 0: all states are zero
    std::vector<std::vector<std::byte>> values;
  };
  [[nodiscard]] Carried carried() const;
  // Takes over the states of an equal machine. Throws TN_BAD_DATA if they are of another machine; changes nothing then.
  void set_carried(const Carried& carried);

  // While the machine is lent to a handler, whoever gets it may read it: require_own() throws TN_MISUSE, and so do
  // forward, backward and reset_carried.
  void lend(bool on) { lent_ = on; }
  void require_own() const;
  // Forgets the values of the last forward, and the gradients that the last update used.
  void drop_outputs();

  [[nodiscard]] int64_t samples() const { return shards_ == nullptr ? samples_ : whole_samples(); }
  [[nodiscard]] double cost() const;                // sum of costs()
  [[nodiscard]] std::vector<double> costs() const;  // the means of the cost outputs, times their coefficients
  [[nodiscard]] std::vector<std::string> cost_names() const;
  // Throws TN_NOT_KEPT if the value was not kept; the message says how to keep it.
  [[nodiscard]] ArrayView output(const LayerOutput& output) const;
  // Returns a gradient since the last update or, until the next forward, the one that the update used; of a row-sparse
  // gradient a dense copy, valid until the next call.
  [[nodiscard]] ArrayView gradient(const std::string& parameter);
  struct SparseGradientView {
    ArrayView ids, values;
  };
  // Throws TN_INVALID if the gradient is dense.
  [[nodiscard]] SparseGradientView sparse_gradient(const std::string& parameter) const;
  // Returns the sums of a metric over the last minibatch.
  [[nodiscard]] std::vector<double> metric_state(const LayerRef& metric) const;
  [[nodiscard]] const std::vector<MetricUse>& metrics() const { return model_.lowered.metrics; }
  [[nodiscard]] bool has_cost() const { return !model_.costs.empty(); }

  [[nodiscard]] const std::shared_ptr<ParameterSet>& set() const { return set_; }
  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  // One for each shard.
  [[nodiscard]] std::vector<std::shared_ptr<Device>> devices() const;
  // How the host reads and writes the memory of the machine.
  [[nodiscard]] HostAccess& access() const { return *access_; }
  [[nodiscard]] const tn_parallel* parallel() const { return parallel_; }
  // "float32", "float64", "bf16" or "tf32".
  [[nodiscard]] std::string compute_name() const;

  // For updaters. Whether backward has run since the last update.
  [[nodiscard]] bool is_for_training() const { return options_.training; }
  [[nodiscard]] bool has_gradients() const { return accumulated_; }
  // Return the gradients of the parameters in `used`. Pointers are valid while memory_id() returns the same object.
  [[nodiscard]] std::vector<GradientRun> gradient_runs(const UsedNames& used) const;
  [[nodiscard]] std::vector<const SparseGradient*> sparse_gradients(const UsedNames& used) const;
  [[nodiscard]] const std::shared_ptr<const MemoryId>& memory_id() const { return memory_id_; }
  // Returns the names of the parameters with gradients that are `names` or lie below them ("D": "D.weight"). Throws
  // TN_INVALID naming those that no such parameter has.
  [[nodiscard]] std::set<std::string> trained(const std::vector<std::string>& names) const;
  // The parameters that a part of this step has updated: a step updates each of them once, and commit or the next
  // update of a whole model ends it.
  [[nodiscard]] const std::set<std::string>& updated() const { return updated_; }
  void add_updated(const std::set<std::string>& names) { updated_.insert(names.begin(), names.end()); }
  // Whether updates skip steps with gradients that are not finite.
  [[nodiscard]] bool skips_steps() const { return options_.precision != TN_PRECISION_FULL; }
  // Lets commit keep all buffers: an update has skipped the step.
  void skip_step() { skipped_ = true; }
  // Ends a step: copies the next values of the buffers in `used` into the set, drops the gradients, and counts an
  // update of the set. Does nothing without a backward since the last call.
  void commit(const UsedNames& used);

  [[nodiscard]] nlohmann::json describe() const;

 private:
  friend class Shards;
  friend class ShardSum;

  // A forward and a backward in two parts, so that the shards of several devices compute at the same time: the first
  // part enqueues the work, the second waits for it. Both are of this machine's device alone.
  // sizes: of the arrays; whole: the sizes, by symbol, of the minibatch that they are a shard of.
  void start_forward(const std::vector<ArrayView>& arrays, const MinibatchSizes& sizes,
                     const std::vector<int64_t>& whole, FeedMode mode);
  void finish_forward();
  void start_backward();
  void finish_backward();
  [[nodiscard]] double own_cost() const;
  [[nodiscard]] std::vector<double> own_costs() const;
  [[nodiscard]] std::vector<double> own_metric_state(const LayerRef& metric) const;
  void reset_own_carried();
  [[nodiscard]] Carried own_carried() const;
  void set_own_carried(const Carried& carried);
  [[nodiscard]] ArrayView own_output(const LayerOutput& output) const;
  [[nodiscard]] ArrayView own_data_gradient(const std::string& data_layer) const;
  [[nodiscard]] int64_t whole_samples() const;

  [[nodiscard]] CompileTarget target() const { return {*set_, *registry_, device_, *access_}; }
  void grow(const std::vector<int64_t>& symbols);
  void replace_model(CompiledModel larger);
  void copy_carried(CompiledModel& to) const;
  void advance_carried(int64_t samples);
  void reserve_rows(SparseGradient& gradient, int64_t added);
  void begin_step(const std::vector<int64_t>& symbols, const std::vector<int64_t>& whole);
  void commit_buffer(size_t number);
  void settle_rows();
  void check_numbers() const;
  [[nodiscard]] double number_at(ValueId value, int64_t element) const;
  void start(Phase phase);
  void finish(Phase phase);
  [[nodiscard]] tn_execution execution() const;
  void run_once();
  void end_failed(Phase phase, const Error& error);
  void name_failure();
  void run_backward();
  void check_backward() const;
  [[nodiscard]] size_t given_gradient(const LayerOutput& output) const;
  [[nodiscard]] const ParameterUse& with_gradient(const std::string& parameter) const;
  [[nodiscard]] const ParameterUse& differentiated(const std::string& parameter) const;
  [[nodiscard]] const SparseGradient* sparse_gradient(ValueId value) const;
  [[nodiscard]] SparseGradientView rows_of(const SparseGradient& gradient) const;
  [[nodiscard]] ArrayView dense_copy(const SparseGradient& gradient);
  [[nodiscard]] double scalar(ValueId value) const;
  [[nodiscard]] ArrayView described(ValueId value) const;
  [[nodiscard]] ArrayView view(ValueId value) const;
  [[nodiscard]] bool is_kept(ValueId value) const;

  Topology topology_;
  std::shared_ptr<ParameterSet> set_;
  Registry* registry_;
  std::shared_ptr<Device> device_;
  const tn_parallel* parallel_;
  MachineOptions options_;  // of several devices: those of the shard of this one
  int64_t max_samples_;     // of the whole minibatch
  std::unique_ptr<HostAccess> access_;
  CompiledModel model_;
  std::shared_ptr<const MemoryId> memory_id_;
  std::set<std::string> updated_;  // parameters, by parts of this step
  bool skipped_ = false;           // an update has skipped this step
  std::vector<int64_t> symbols_;   // sizes by symbol in the last forward
  Buffer dense_gradient_;          // returned by gradient()
  ErrorSink errors_;
  std::optional<uint64_t> version_;  // of the parameters
  int64_t samples_ = -1;             // of the last forward; -1: none, or it failed
  int64_t first_sample_ = 0;         // of a shard: how many samples of the minibatch are before it
  int64_t carried_samples_ = 0;      // samples of the forward that wrote the next carried states; 0: they are zero
  bool fresh_ = false;               // a forward succeeded, and no backward has overwritten its values yet
  bool data_gradients_ = false;      // backward has run since the last forward: the gradients of data layers are valid
  bool accumulated_ = false;         // backward has run since the last update: the gradients are valid
  bool used_ = false;                // an update has used the gradients, and no forward has run since
  bool lent_ = false;                // to a handler, which may read
  std::unique_ptr<Shards> shards_;   // null: one device
};

}  // namespace tenon::host
