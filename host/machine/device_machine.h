// A machine of one device: forward, backward and memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/parameter_set.h"
#include "core/topology.h"
#include "host/machine/carried.h"
#include "host/machine/compiled_model.h"
#include "host/machine/feeds.h"
#include "host/machine/gradient_runs.h"
#include "host/machine/shards/shard.h"
#include "host/machine/shards/shard_values.h"
#include "host/machine/tables/minibatch_rows.h"
#include "host/plugins/device.h"
#include "host/plugins/host_access.h"

namespace tenon::host {

using namespace core;

// Compiles a topology for a device and runs it on shards of minibatches. Forward and backward have two parts, so that
// several devices compute at the same time: the first enqueues the work, the second waits for it. Which calls are legal
// in which order, Machine knows.
class DeviceMachine final : public Shard, public ShardValues {
 public:
  DeviceMachine(Topology topology, std::shared_ptr<ParameterSet> set, Registry& registry,
                std::shared_ptr<Device> device, const tn_parallel* parallel, const MachineOptions& options);
  ~DeviceMachine() override;

  // A shard of a minibatch.
  struct Minibatch {
    uint32_t shard;                        // its number: the stream of its draws
    const std::vector<ArrayView>& arrays;  // checked
    const MinibatchSizes& sizes;           // of the arrays
    const std::vector<int64_t>& whole;     // sizes, by symbol, of the minibatch of all shards
    int64_t first_sample;                  // number in that minibatch
  };
  // Compiles again with larger bounds if a minibatch has more rows than fit; then there are no outputs. Changes nothing
  // on failure.
  void grow(const std::vector<int64_t>& symbols, bool keeps_gradients);
  // After grow(), with the rows of tables that this process reads of the minibatch, by number in CompiledModel::tables:
  // copies their values into caches. Borrows them until the next call.
  void take_tables(const std::vector<TableRows>& rows);
  // After grow() and take_tables(). version: as of Machine::set_version.
  void start_forward(const Minibatch& minibatch, FeedMode mode, std::optional<uint64_t> version);
  void finish_forward();
  // What may fail before a backward changes anything. adds: to the gradients so far, which it else overwrites.
  void prepare_backward(bool adds);
  // Called with bytes of dense_gradients() that the backward does not change any more, each byte once.
  using Final = std::function<void(uint64_t offset, uint64_t bytes)>;
  // final: called while the backward runs, on a device of which the host addresses the memory; null: nothing is.
  void start_backward(bool adds, const Final& final = nullptr);
  void finish_backward();
  // Forgets the values of the last forward.
  void drop_outputs() {
    samples_ = -1;
    summed_ = false;
  }
  // After a forward of which a shard failed: also forgets the carried states that it has left. The next forward begins
  // with the states with which this one began.
  void abandon_forward();

  [[nodiscard]] int64_t samples() const override { return samples_; }
  [[nodiscard]] double cost() const override;
  [[nodiscard]] std::vector<double> costs() const override;
  [[nodiscard]] std::vector<double> metric_state(const LayerRef& metric) const override;
  [[nodiscard]] ArrayView output(const LayerOutput& output) const override;
  [[nodiscard]] ArrayView data_gradient(size_t feed) const override {
    return view(model_.lowered.feeds[feed].gradient);
  }
  [[nodiscard]] CarriedStates carried() const override { return carried_.states(); }
  void set_carried(const CarriedStates& carried) override { carried_.set(carried); }
  void reset_carried() override;
  // What its last backward has left.
  [[nodiscard]] DeviceMachine& machine() override { return *this; }
  [[nodiscard]] std::span<std::byte> dense_gradients() const override;
  [[nodiscard]] SparseGradient& sparse_gradient(size_t number) const override {
    return *model_.sparse_gradients[number];
  }
  void reserve_rows(size_t number, int64_t added) override;
  [[nodiscard]] void* next_value(size_t number) const override {
    return model_.calls->memory(model_.lowered.buffers[number].next);
  }
  [[nodiscard]] const std::shared_ptr<const MemoryId>& memory_id() const override { return memory_id_; }
  void wait() { access_->wait(); }
  [[nodiscard]] const std::vector<MergedBuffer>& merged_buffers() const { return merged_buffers_; }
  // Takes the rows of a sum that another process has added up.
  void take_rows(size_t number, const std::vector<int64_t>& ids, const std::byte* values);
  // Says that gradients and next values are those of the whole minibatch, even if its last shard had no samples.
  void set_summed() { summed_ = true; }

  void zero_gradients();
  // Copies the next values of the buffers in `used` into the set.
  void commit_buffers(const UsedNames& used);
  // Returns type and shape of a value, without its data.
  [[nodiscard]] ArrayView described(ValueId value) const;
  [[nodiscard]] ArrayView view(ValueId value) const;
  [[nodiscard]] nlohmann::json describe() const;

  [[nodiscard]] const CompiledModel& model() const { return model_; }
  [[nodiscard]] const MachineOptions& options() const { return options_; }
  [[nodiscard]] const std::shared_ptr<ParameterSet>& set() const { return set_; }
  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  // How the host reads and writes the memory of the machine.
  [[nodiscard]] HostAccess& access() const { return *access_; }
  [[nodiscard]] const tn_parallel* parallel() const { return parallel_; }
  [[nodiscard]] ErrorSink& errors() { return errors_; }
  [[nodiscard]] tn_execution execution() const;
  // "float32", "float64", "bf16" or "tf32".
  [[nodiscard]] std::string compute_name() const;

 private:
  [[nodiscard]] CompileTarget target() const { return {*set_, *registry_, device_, *access_}; }
  void replace_model(CompiledModel larger, bool keeps_gradients);
  void begin_step(const Minibatch& minibatch);
  void take_places(const std::vector<ArrayView>& arrays);
  void run_once(std::optional<uint64_t> version);
  void start(Phase phase, const Final& final = nullptr);
  void finish(Phase phase);
  void end_failed(Phase phase, const Error& error);
  void name_failure();
  void commit_buffer(size_t number);
  [[nodiscard]] double scalar(ValueId value) const;

  Topology topology_;
  std::shared_ptr<ParameterSet> set_;
  Registry* registry_;
  std::shared_ptr<Device> device_;
  const tn_parallel* parallel_;
  MachineOptions options_;  // max_samples: of the shard
  std::unique_ptr<HostAccess> access_;
  CompiledModel model_;
  const std::vector<MergedBuffer> merged_buffers_;
  const std::vector<TableRows>* rows_ = nullptr;  // of tables; null: there are none
  CarriedMemory carried_;
  std::shared_ptr<const MemoryId> memory_id_;
  std::vector<int64_t> symbols_;        // sizes by symbol in the last forward
  std::vector<FinalPart> final_parts_;  // of the dense gradients; empty: not known yet
  ErrorSink errors_;
  int64_t samples_ = -1;      // of the last forward; -1: none, or it failed
  int64_t first_sample_ = 0;  // of them, in the minibatch of all shards
  bool summed_ = false;       // whether the next values of buffers are those of the whole minibatch
};

}  // namespace tenon::host
