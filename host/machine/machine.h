// The gradient machine: a topology bound to a ParameterSet and devices. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "core/parameter_set.h"
#include "core/topology.h"
#include "host/machine/compiled_model.h"
#include "host/machine/device_machine.h"
#include "host/machine/feeds.h"
#include "host/machine/set_gate.h"
#include "host/machine/shards/lane.h"
#include "host/machine/shards/row_terms.h"
#include "host/machine/shards/shards.h"
#include "host/machine/step_gradients.h"
#include "host/plugins/device.h"

namespace tenon::host {

using namespace core;

class MachineTables;
class TeamTables;
class TeamResults;
class TeamSum;

// The minibatch of which a process has read a part: the samples of its shards at least.
struct WholeMinibatch {
  int64_t first = 0;           // the number in it of the first sample of the part
  std::vector<int64_t> sizes;  // by symbol
};

// Compiles a topology and runs it forward and backward, on one or more devices of one kind: each computes shards of the
// minibatch, with the same parameters. A device that is in the list twice computes two shards. With a team each process
// computes some of the shards; its calls of forward, backward and step are collective. The first shard of the process
// has the sums of the gradients over all shards. Where only results are wanted, one machine of a device computes its
// shards one after another, except those that carry states. Over a set without values a machine allocates no memory,
// and can be described but not run.
class Machine {
 public:
  // TN_INVALID if max_samples is smaller than the list of devices, TN_UNSUPPORTED for what shards cannot compute.
  Machine(const Topology& topology, const std::shared_ptr<ParameterSet>& set, Registry& registry,
          const std::vector<std::shared_ptr<Device>>& devices, const tn_parallel* parallel,
          const MachineOptions& options);
  ~Machine();

  // The data layers, in the order in which forward takes their arrays.
  [[nodiscard]] const std::vector<Feed>& feeds() const { return model().lowered.feeds; }
  // Checks arrays of any number of samples, in the order of feeds(), as forward does.
  void check_feeds(const std::vector<ArrayView>& arrays) const;
  // Checks a part of a minibatch, as forward does, and returns its sizes, by symbol. first: as of WholeMinibatch.
  [[nodiscard]] std::vector<int64_t> sizes_of(const std::vector<ArrayView>& arrays, int64_t first) const {
    return FeedChecker(model(), max_samples_, first).check(arrays).symbols;
  }
  [[nodiscard]] size_t sizes_count() const { return model().bounds.size(); }
  // Returns the sizes of a minibatch whose parts have these.
  [[nodiscard]] std::vector<int64_t> joined_sizes(const std::vector<std::vector<int64_t>>& parts) const {
    return FeedChecker(model(), max_samples_).joined(parts);
  }
  // Says that the parameters have the values of this version until the next call of it, so that what a machine that
  // does not train makes of them alone is made once. Empty, as at first: they may change between forwards.
  void set_version(std::optional<uint64_t> version) { version_ = version; }
  // Checks all arrays before it changes anything, then runs. If the run fails, there are no outputs until a forward
  // succeeds. minibatch: of which these are a part, that sizes_of() has checked; null: they are all of it.
  void forward(const std::vector<ArrayView>& arrays, FeedMode mode = FeedMode::kCopied,
               const WholeMinibatch* minibatch = nullptr);
  // The same while it reads the set, whose gate this is, in the version that the gate has then.
  void forward(SetGate& gate, const std::vector<ArrayView>& arrays, FeedMode mode = FeedMode::kCopied,
               const WholeMinibatch* minibatch = nullptr);
  // Adds to the gradients since the last update; drops them if the run fails. At most once after each forward, because
  // it overwrites the values of the forward.
  void backward();
  // The same from gradients of outputs instead of the costs, for a machine with given_gradients: gradients[i] has type
  // (or one that widens to it) and shape of outputs[i]; those that are not given are 0. Checks all arrays before it
  // changes anything.
  void backward_from(const std::vector<LayerOutput>& outputs, const std::vector<ArrayView>& gradients);
  // A forward and a backward, for any machine for training. If one of them fails, the gradients since the last update
  // are dropped.
  void forward_backward(const std::vector<ArrayView>& arrays, FeedMode mode = FeedMode::kCopied,
                        const WholeMinibatch* minibatch = nullptr);
  // Replaces the gradient of a parameter since the last update by `values`, of its shape. Without a backward since the
  // last update, those of the others become 0. Throws TN_INVALID if the gradient is row-sparse.
  void set_gradient(const std::string& parameter, const ArrayView& values);
  // Returns the gradient of a data layer by the last backward, for a machine with data_gradients.
  [[nodiscard]] ArrayView data_gradient(const std::string& data_layer) const;
  // Numbers in CompiledModel::tables of those with gradients.
  [[nodiscard]] std::vector<size_t> trained_tables() const;
  // Takes the gradient of a table since the last update, of rows that this process owns, as set_gradient those of
  // others. Of each table with a gradient, also one without rows.
  void set_row_gradient(size_t table, const RowTerms& gradient);
  // The gradients of the parameters.
  [[nodiscard]] StepGradients& step() { return step_; }
  [[nodiscard]] const StepGradients& step() const { return step_; }
  // The tables whose rows lie with the processes of the team; null: there are none.
  [[nodiscard]] TeamTables* team_tables() const;

  // Sets the carried states to zero, as before the first forward.
  void reset_carried();
  // The states that the last forward left for the next one.
  [[nodiscard]] CarriedStates carried() const { return shards_.carried(); }
  // Takes over the states of an equal machine. Throws TN_BAD_DATA if they are of another machine; changes nothing then.
  void set_carried(const CarriedStates& carried) { shards_.set_carried(carried); }

  // A training lends its machine to handlers, which may read it, and to updaters of the application, which may also
  // change its gradients and end its step. Meanwhile require_own() throws TN_MISUSE, and so do forward, backward and
  // reset_carried; require_updatable() throws it for handlers, and for a machine without gradients.
  enum class Lending { kNone, kReading, kUpdating };
  void lend(Lending lending) { lending_ = lending; }
  void require_own() const;
  void require_updatable() const;
  // Forgets the values of the last forward, and the gradients that the last update used.
  void drop_outputs();

  [[nodiscard]] int64_t samples() const { return shards_.samples(); }  // -1: no forward, or it failed
  [[nodiscard]] double cost() const { return shards_.cost(); }         // sum of costs()
  // Returns the means of the cost outputs, times their coefficients.
  [[nodiscard]] std::vector<double> costs() const { return shards_.costs(); }
  [[nodiscard]] std::vector<std::string> cost_names() const;
  // Throws TN_NOT_KEPT if the value was not kept; the message says how to keep it. Borrowed until the next forward, of
  // several devices until the next call for the same output.
  [[nodiscard]] ArrayView output(const LayerOutput& output) const;
  // Returns the sums of a metric over the last minibatch.
  [[nodiscard]] std::vector<double> metric_state(const LayerRef& metric) const { return shards_.metric_state(metric); }
  [[nodiscard]] const std::vector<MetricUse>& metrics() const { return model().lowered.metrics; }

  [[nodiscard]] const std::shared_ptr<ParameterSet>& set() const { return first().set(); }
  [[nodiscard]] const std::shared_ptr<Device>& device() const { return first().device(); }
  // Of this process, one for each of its shards.
  [[nodiscard]] std::vector<std::shared_ptr<Device>> devices() const;
  // The processes among which the shards are divided; null: this process computes all.
  [[nodiscard]] Team* team() const { return team_; }
  // Of a minibatch, over all processes.
  [[nodiscard]] size_t shards() const { return shards_.count(); }
  [[nodiscard]] std::string compute_name() const { return first().compute_name(); }
  [[nodiscard]] bool is_for_training() const { return first().options().training; }
  [[nodiscard]] nlohmann::json describe() const;
  [[nodiscard]] const CompiledModel& model() const { return first().model(); }

 private:
  // What the last forward and the backward after it have left.
  enum class Values {
    kNone,            // no forward, or it failed
    kForwarded,       // outputs, and what a backward reads
    kOverwritten,     // outputs; a backward has begun
    kDifferentiated,  // outputs and gradients of data layers; the backward has succeeded
  };

  // Which shards a minibatch has, and which of them this process computes.
  struct Placement {
    size_t shards;
    ShardRange own;
  };
  class Division;

  Machine(const Topology& topology, const std::shared_ptr<ParameterSet>& set, Registry& registry,
          const std::vector<std::shared_ptr<Device>>& devices, const tn_parallel* parallel,
          const MachineOptions& options, const Placement& placement);
  [[nodiscard]] static Placement placement_of(const std::vector<std::shared_ptr<Device>>& devices,
                                              const MachineOptions& options);

  [[nodiscard]] DeviceMachine& first() const { return lanes_.front()->machine(); }
  [[nodiscard]] std::unique_ptr<MachineTables> tables_of(const MachineOptions& options, size_t shards);
  [[nodiscard]] size_t rounds() const;
  void start_forward(const std::vector<ArrayView>& arrays, FeedMode mode, const WholeMinibatch* minibatch);
  void begin_forward(const Division& division);
  void bring_tables(const Division& division);
  void forward_round(const Division& division, size_t round, FeedMode mode);
  void run_rounds(const Division& division, FeedMode mode);
  void add_up(const ShardTree& tree);
  // Starts all machines that have a shard in this round, then waits for all. start, finish: called with the lane.
  template <typename Start, typename Finish>
  void compute(size_t round, const Start& start, const Finish& finish) {
    const auto each = [&](const auto& work) {
      for (const auto& lane : lanes_)
        if (round < lane->count()) work(*lane);
    };
    each(start);
    each(finish);
  }
  void grow(const Division& division);
  void check_trainable() const;
  void check_backward() const;
  void run_backward();
  void backward_round(size_t round, bool adds, const ShardTree& tree);
  void finish_work() noexcept;
  void finish_results();
  [[nodiscard]] DeviceMachine::Final begin_team_sum(size_t round, const ShardTree& tree);
  // Whether dense gradients travel to other processes while a backward computes others.
  [[nodiscard]] bool overlaps() const;
  void check_divided(const LayerOutput& output) const;

  int64_t max_samples_;
  Team* team_;                                        // null: this process computes all shards
  ShardRange own_;                                    // the shards of this process
  ShardSums sums_;                                    // of nodes of this process
  std::vector<std::unique_ptr<Lane>> lanes_;          // of this process, in the order of their shards
  std::vector<std::unique_ptr<ShardRecord>> others_;  // of other processes: before, then behind those
  mutable Shards shards_;
  std::unique_ptr<TeamResults> team_results_;  // null without a team, as the next
  std::unique_ptr<TeamSum> team_sum_;
  StepGradients step_;
  std::unique_ptr<MachineTables> tables_;  // null: the set has all rows
  std::optional<uint64_t> version_;        // of the parameters
  Values values_ = Values::kNone;
  Lending lending_ = Lending::kNone;
};

}  // namespace tenon::host
