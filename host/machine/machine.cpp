// SPDX-License-Identifier: Apache-2.0
#include "host/machine/machine.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <list>

#include "base/text.h"
#include "core/error.h"
#include "host/comm/team.h"
#include "host/machine/sample_range.h"
#include "host/machine/shards/shard_tree.h"
#include "host/machine/shards/team_results.h"
#include "host/machine/shards/team_sum.h"
#include "host/machine/tables/machine_tables.h"

namespace tenon::host {

namespace {

constexpr uint32_t kMostShards = 65536;

std::string listed(const std::vector<std::shared_ptr<Device>>& devices) {
  return base::joined(devices, [](const auto& device) { return text("\"", device->name(), "\""); });
}

// Returns the shards of a minibatch. Throws TN_INVALID if there are fewer than devices and processes, or if a minibatch
// is smaller than a list of devices that states its shards.
size_t shards_of(const std::vector<std::shared_ptr<Device>>& devices, const MachineOptions& options) {
  const size_t processes = options.team == nullptr ? 1 : static_cast<size_t>(options.team->trainers());
  if (options.shards == 0 && processes == 1) {
    const auto count = static_cast<int64_t>(devices.size());
    if (count > 1 && options.max_samples >= 1 && options.max_samples < count)
      fail(TN_INVALID, SubjectName{"devices"}, "a minibatch of at most ", options.max_samples,
           options.max_samples == 1 ? " sample" : " samples", " is smaller than the list of devices, ", listed(devices),
           ": each computes a shard of it");
    return devices.size();
  }
  const size_t shards = options.shards == 0 ? processes * devices.size() : options.shards;
  if (shards < processes * devices.size())
    fail(TN_INVALID, SubjectName{"shards"}, "shards is ", shards, ", fewer than the devices, ", listed(devices),
         processes == 1 ? "" : text(", of ", processes, " processes"));
  if (shards > kMostShards)
    fail(TN_INVALID, SubjectName{"shards"}, "shards is ", shards, "; expected at most ", kMostShards);
  return shards;
}

// Throws TN_UNSUPPORTED for what several shards cannot compute. on: says on which devices.
void check_divisible(const CompiledModel& model, const MachineOptions& options, const std::string& on) {
  const Graph& graph = model.calls->graph();
  if (options.given_gradients)
    fail(TN_UNSUPPORTED, SubjectName{"devices"}, "given gradients cannot be divided among shards ", on);
  for (const CarriedUse& use : model.lowered.carried) {
    const Shape& shape = graph.spec(use.now).shape;
    if (shape.empty() || shape[0].symbol == TN_SYMBOL_NONE)
      fail(TN_UNSUPPORTED, SubjectName{"devices"},
           "a state that is carried to the next minibatch, and that all its samples share, cannot be divided ", on);
  }
  for (const Cost& cost : model.costs) {
    const auto rows = graph.rows.find(graph.spec(cost.per_sample).shape[0].symbol);
    if (rows == graph.rows.end() || rows->second.count == kNoValue) continue;
    const int32_t maker = graph.values[static_cast<size_t>(cost.mean)].producer;
    const std::string& layer = graph.layers[static_cast<size_t>(graph.nodes[static_cast<size_t>(maker)].layer)];
    fail(TN_UNSUPPORTED, SubjectName{layer}, "cost layer \"", layer,
         "\" is a mean over rows whose number a layer finds; it cannot be divided ", on);
  }
}

// Makes the lanes of the shards of this process, which are divided among the devices in their order; one without shards
// for a server, which has the model, too.
std::vector<std::unique_ptr<Lane>> lanes_on(const std::vector<std::shared_ptr<Device>>& devices, const ShardRange& own,
                                            bool results_only, ShardSums& sums,
                                            const std::function<std::unique_ptr<DeviceMachine>(size_t)>& machine_on) {
  std::vector<std::unique_ptr<Lane>> lanes;
  auto shard = static_cast<size_t>(own.first);
  for (size_t i = 0; i < devices.size(); ++i) {
    const size_t end = shard + static_cast<size_t>(shard_range(own.count, devices.size(), i).count);
    while (shard < end) {
      std::unique_ptr<DeviceMachine> machine = machine_on(i);
      const bool takes_all = results_only && machine->model().lowered.carried.empty();
      const ShardSpan shards = {shard, takes_all ? end : shard + 1};
      shard = shards.end;
      lanes.push_back(std::make_unique<Lane>(std::move(machine), shards, sums));
    }
  }
  if (lanes.empty()) lanes.push_back(std::make_unique<Lane>(machine_on(0), ShardSpan{shard, shard}, sums));
  return lanes;
}

std::vector<std::unique_ptr<ShardRecord>> shards_elsewhere(size_t shards, const Team* team) {
  std::vector<std::unique_ptr<ShardRecord>> others;
  for (int64_t process = 0; team != nullptr && process < team->processes(); ++process) {
    if (process == team->rank()) continue;
    for (int64_t i = shards_of_process(shards, team->trainers(), process).count; i > 0; --i)
      others.push_back(std::make_unique<ShardRecord>(text("lies in part in process ", process)));
  }
  return others;
}

// Returns all shards of a minibatch in their order. first: the number of the first one of the lanes.
std::vector<Shard*> in_order(const std::vector<std::unique_ptr<Lane>>& lanes,
                             const std::vector<std::unique_ptr<ShardRecord>>& others, int64_t first) {
  std::vector<Shard*> shards;
  for (const auto& other : others) shards.push_back(other.get());
  std::vector<Shard*> own;
  for (const auto& lane : lanes)
    for (size_t i = 0; i < lane->count(); ++i) own.push_back(&lane->shard(i));
  shards.insert(shards.begin() + first, own.begin(), own.end());
  return shards;
}

}  // namespace

Machine::Placement Machine::placement_of(const std::vector<std::shared_ptr<Device>>& devices,
                                         const MachineOptions& options) {
  const size_t shards = shards_of(devices, options);
  const Team* const team = options.team;
  return {shards,
          shards_of_process(shards, team == nullptr ? 1 : team->trainers(), team == nullptr ? 0 : team->rank())};
}

Machine::Machine(const Topology& topology, const std::shared_ptr<ParameterSet>& set, Registry& registry,
                 const std::vector<std::shared_ptr<Device>>& devices, const tn_parallel* parallel,
                 const MachineOptions& options)
    : Machine(topology, set, registry, devices, parallel, options, placement_of(devices, options)) {}

Machine::Machine(const Topology& topology, const std::shared_ptr<ParameterSet>& set, Registry& registry,
                 const std::vector<std::shared_ptr<Device>>& devices, const tn_parallel* parallel,
                 const MachineOptions& options, const Placement& placement)
    : max_samples_(options.max_samples),
      team_(options.team),
      own_(placement.own),
      lanes_(lanes_on(devices, own_, options.results_only || !set->has_values(), sums_,
                      [&](size_t device) {
                        MachineOptions of_shard = options;
                        if (max_samples_ >= 1)
                          of_shard.max_samples = shard_range(max_samples_, placement.shards, 0).count;
                        return std::make_unique<DeviceMachine>(topology, set, registry, devices[device], parallel,
                                                               of_shard);
                      })),
      others_(shards_elsewhere(placement.shards, team_)),
      shards_(in_order(lanes_, others_, own_.first), max_samples_, set->allocator()),
      team_results_(team_ == nullptr ? nullptr : std::make_unique<TeamResults>(*team_, lanes_, others_)),
      team_sum_(team_ == nullptr ? nullptr : std::make_unique<TeamSum>(*team_, first(), placement.shards)),
      step_(first()),
      tables_(tables_of(options, placement.shards)) {
  if (placement.shards == 1) return;
  const bool by_devices = options.shards == 0 && team_ == nullptr;
  check_divisible(model(), options,
                  by_devices ? "on several devices, " + listed(devices) : text("among ", placement.shards, " shards"));
  if (team_ != nullptr && !model().lowered.carried.empty())
    fail(TN_UNSUPPORTED, SubjectName{"team"}, "states that are carried to the next minibatch are of one process; ",
         team_->processes(), " train");
}

Machine::~Machine() = default;

std::unique_ptr<MachineTables> Machine::tables_of(const MachineOptions& options, size_t shards) {
  if (set()->owned() == nullptr) return nullptr;
  if (options.rows != nullptr) return std::make_unique<SourcedTables>(first(), shards, *options.rows);
  return std::make_unique<TeamTables>(team_, first(), shards, own_, step_);
}

std::vector<size_t> Machine::trained_tables() const {
  std::vector<size_t> tables;
  for (size_t i = 0; i < model().tables.size(); ++i)
    for (const auto& gradient : model().sparse_gradients)
      if (gradient->entry() == model().tables[i].entry) tables.push_back(i);
  return tables;
}

TeamTables* Machine::team_tables() const { return dynamic_cast<TeamTables*>(tables_.get()); }

void Machine::set_row_gradient(size_t table, const RowTerms& gradient) {
  team_tables()->take(table, gradient);
  step_.set_accumulated();
}

void Machine::check_feeds(const std::vector<ArrayView>& arrays) const {
  static_cast<void>(FeedChecker(model(), std::numeric_limits<int64_t>::max()).check(arrays));
}

// The most shards of a lane: each computes one of them in a round. A server has one round, in which it computes none.
size_t Machine::rounds() const {
  size_t most = 1;
  for (const auto& lane : lanes_) most = std::max(most, lane->count());
  return most;
}

// The shards of a minibatch that this process computes. One that has all samples of the arrays has them as they are.
class Machine::Division : base::NotCopied {
 public:
  // Borrows the arrays, and checks them unless they are a part. minibatch: as of forward.
  Division(const Machine& machine, const std::vector<ArrayView>& arrays, const WholeMinibatch* minibatch)
      : first_(static_cast<size_t>(machine.own_.first)), arrays_(arrays) {
    const FeedChecker checker(machine.model(), machine.max_samples_);
    sizes_ = minibatch == nullptr ? checker.check(arrays) : checker.sizes(arrays);
    minibatch_ = minibatch == nullptr ? WholeMinibatch{0, sizes_.symbols} : *minibatch;
    const auto count = static_cast<size_t>(machine.own_.count);
    shards_.reserve(count);
    for (size_t i = first_; i < first_ + count; ++i) {
      const ShardRange range = shard_range(samples(), machine.shards(), i);
      const auto number = static_cast<uint32_t>(i);
      if (range.count == sizes_.symbols[TN_SYMBOL_SAMPLES]) {
        shards_.push_back({number, arrays, sizes_, minibatch_.sizes, range.first});
      } else {
        const ShardRange held{range.first - minibatch_.first, range.count};
        const Part& part = parts_.emplace_back(machine.model(), arrays, held);
        shards_.push_back({number, part.range.arrays(), part.sizes, minibatch_.sizes, range.first});
      }
    }
  }

  [[nodiscard]] const std::vector<ArrayView>& arrays() const { return arrays_; }
  // The number in the minibatch of their first sample.
  [[nodiscard]] int64_t first() const { return minibatch_.first; }
  // Of the minibatch.
  [[nodiscard]] int64_t samples() const { return minibatch_.sizes[TN_SYMBOL_SAMPLES]; }
  [[nodiscard]] const DeviceMachine::Minibatch& at(const Lane& lane, size_t place) const {
    return shards_[lane.first() + place - first_];
  }

 private:
  struct Part {
    Part(const CompiledModel& model, const std::vector<ArrayView>& arrays, const ShardRange& cut)
        : range(arrays, cut.first, cut.count), sizes(FeedChecker(model, cut.count).sizes(range.arrays())) {}
    SampleRange range;
    MinibatchSizes sizes;
  };
  size_t first_;  // shard
  const std::vector<ArrayView>& arrays_;
  MinibatchSizes sizes_;  // of the arrays
  WholeMinibatch minibatch_;
  std::list<Part> parts_;
  std::vector<DeviceMachine::Minibatch> shards_;
};

void Machine::begin_forward(const Division& division) {
  grow(division);
  drop_outputs();
  shards_.drop_copies();
  shards_.cut_carried(division.samples());
  if (tables_ != nullptr) bring_tables(division);
}

// Brings the rows of tables that the shards of this process read.
void Machine::bring_tables(const Division& division) {
  tables_->fetch({division.arrays(), division.first(), division.samples()});
  for (const auto& lane : lanes_) lane->machine().take_tables(tables_->rows());
}

void Machine::forward_round(const Division& division, size_t round, FeedMode mode) {
  try {
    compute(
        round, [&](Lane& lane) { lane.machine().start_forward(division.at(lane, round), mode, version_); },
        [&](Lane& lane) {
          lane.machine().finish_forward();
          lane.record(round);
        });
  } catch (...) {
    for (const auto& lane : lanes_) {
      lane->machine().abandon_forward();
      lane->drop_outputs();
    }
    throw;
  }
}

void Machine::forward(const std::vector<ArrayView>& arrays, FeedMode mode, const WholeMinibatch* minibatch) {
  start_forward(arrays, mode, minibatch);
  finish_results();
}

// A forward, behind which the results of other processes follow.
void Machine::start_forward(const std::vector<ArrayView>& arrays, FeedMode mode, const WholeMinibatch* minibatch) {
  require_own();
  if (!set()->has_values())
    fail(TN_MISUSE, "the machine can only be planned: its parameters have no values, they were only declared");
  const Division division(*this, arrays, minibatch);
  begin_forward(division);
  for (size_t round = 0; round < rounds(); ++round) forward_round(division, round, mode);
  if (team_ != nullptr) team_results_->begin(division.samples());
  values_ = rounds() == 1 ? Values::kForwarded : Values::kNone;
}

void Machine::forward_backward(const std::vector<ArrayView>& arrays, FeedMode mode, const WholeMinibatch* minibatch) {
  check_trainable();
  if (rounds() == 1) {
    start_forward(arrays, mode, minibatch);
    backward();
    return finish_results();
  }
  const Division division(*this, arrays, minibatch);
  begin_forward(division);
  try {
    run_rounds(division, mode);
  } catch (...) {
    finish_work();
    drop_outputs();
    throw;
  }
}

void Machine::run_rounds(const Division& division, FeedMode mode) {
  const int64_t samples = division.samples();
  const ShardTree tree(samples, shards_.count());
  const bool adds = step_.exist();
  for (const auto& lane : lanes_) lane->clear_sums();
  for (size_t round = 0; round < rounds(); ++round) {
    for (const auto& lane : lanes_) lane->keep_last();
    forward_round(division, round, mode);
    if (team_ != nullptr && round + 1 == rounds()) team_results_->begin(samples);
    if (samples > 0) backward_round(round, adds && round == 0, tree);
  }
  if (samples > 0) {
    add_up(tree);
    step_.set_accumulated();
  }
  finish_results();
}

void Machine::finish_results() {
  if (team_ != nullptr) team_results_->finish();
}

void Machine::forward(SetGate& gate, const std::vector<ArrayView>& arrays, FeedMode mode,
                      const WholeMinibatch* minibatch) {
  const SetRead read(gate);
  set_version(read.version());
  forward(arrays, mode, minibatch);
}

// Makes room for the rows of a minibatch. Changes nothing on failure, unless a machine before has lost its outputs.
void Machine::grow(const Division& division) {
  try {
    for (size_t i = 0; i < lanes_.size(); ++i)
      for (size_t place = 0; place < lanes_[i]->count(); ++place)
        lanes_[i]->machine().grow(division.at(*lanes_[i], place).sizes.symbols, i == 0 && step_.exist());
  } catch (...) {
    const bool lost =
        std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->machine().samples() < 0; });
    if (lost) drop_outputs();
    throw;
  }
}

void Machine::drop_outputs() {
  for (const auto& lane : lanes_) lane->drop_outputs();
  for (const auto& other : others_) other->drop();
  values_ = Values::kNone;
  step_.forget_used();
}

void Machine::require_own() const {
  if (lending_ == Lending::kUpdating)
    fail(TN_MISUSE, "the machine belongs to a training, whose updater may read it and end its step, no more");
  if (lending_ == Lending::kReading)
    fail(TN_MISUSE, "the machine belongs to a training, whose handler may only read it");
}

void Machine::require_updatable() const {
  if (lending_ != Lending::kUpdating) require_own();
  if (!is_for_training()) fail(TN_MISUSE, "this machine was made without training; it has no gradients");
}

void Machine::reset_carried() {
  require_own();
  shards_.reset_carried();
}

ArrayView Machine::output(const LayerOutput& output) const {
  if (lanes_.size() > 1) check_divided(output);
  return shards_.output(output);
}

void Machine::check_divided(const LayerOutput& output) const {
  static_cast<void>(first().output(output));  // what else is wrong with it comes first
  const Shape& shape = model().calls->graph().spec(model().lowered.value_of(output)).shape;
  if (!shape.empty() && shape[0].symbol != TN_SYMBOL_NONE) return;
  const std::string name = output_name(output);
  fail(TN_UNSUPPORTED, SubjectName{name}, "the output of layer \"", name,
       "\" has no dimension of samples: each of the devices ", listed(devices()), " has one of its shard");
}

}  // namespace tenon::host
