// SPDX-License-Identifier: Apache-2.0
#include "host/machine/machine.h"

#include <algorithm>
#include <limits>
#include <list>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "core/error.h"
#include "host/comm/team.h"
#include "host/machine/sample_range.h"
#include "host/machine/shards/remote_shard.h"
#include "host/machine/shards/shard_tree.h"
#include "host/machine/shards/team_sum.h"

namespace tenon::host {

namespace {

constexpr uint32_t kMostShards = 65536;

std::string listed(const std::vector<std::shared_ptr<Device>>& devices) {
  return base::joined(devices, [](const auto& device) { return text("\"", device->name(), "\""); });
}

// Returns the shards of a minibatch. Throws TN_INVALID if there are fewer than devices and processes, or if a minibatch
// is smaller than a list of devices that states its shards.
size_t shards_of(const std::vector<std::shared_ptr<Device>>& devices, const MachineOptions& options) {
  const size_t processes = options.team == nullptr ? 1 : static_cast<size_t>(options.team->processes());
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

// Returns the shards that this process computes.
ShardRange own_shards(size_t shards, const Team* team) {
  return team == nullptr ? shards_of_process(shards, 1, 0) : shards_of_process(shards, team->processes(), team->rank());
}

// Returns the options of the machine of shard `number` of `shards`.
MachineOptions options_of_shard(const MachineOptions& options, size_t shards, size_t number) {
  MachineOptions result = options;
  if (options.max_samples >= 1) result.max_samples = shard_range(options.max_samples, shards, 0).count;
  result.shard = static_cast<uint32_t>(number);
  return result;
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

// Makes the machines of the shards of this process, which are divided among the devices in their order.
std::vector<std::unique_ptr<DeviceMachine>> machines_on(const Topology& topology,
                                                        const std::shared_ptr<ParameterSet>& set, Registry& registry,
                                                        const std::vector<std::shared_ptr<Device>>& devices,
                                                        const tn_parallel* parallel, const MachineOptions& options) {
  const size_t shards = shards_of(devices, options);
  const ShardRange own = own_shards(shards, options.team);
  std::vector<std::unique_ptr<DeviceMachine>> machines;
  for (size_t i = 0; i < devices.size(); ++i)
    for (int64_t k = shard_range(own.count, devices.size(), i).count; k > 0; --k)
      machines.push_back(std::make_unique<DeviceMachine>(
          topology, set, registry, devices[i], parallel,
          options_of_shard(options, shards, static_cast<size_t>(own.first) + machines.size())));
  if (shards == 1) return machines;
  const bool by_devices = options.shards == 0 && options.team == nullptr;
  check_divisible(machines.front()->model(), options,
                  by_devices ? "on several devices, " + listed(devices) : text("among ", shards, " shards"));
  if (options.team != nullptr && !machines.front()->model().lowered.carried.empty())
    fail(TN_UNSUPPORTED, SubjectName{"team"}, "states that are carried to the next minibatch are of one process; ",
         options.team->processes(), " train");
  return machines;
}

std::vector<std::unique_ptr<RemoteShard>> shards_elsewhere(size_t shards, const Team* team) {
  std::vector<std::unique_ptr<RemoteShard>> others;
  for (int64_t process = 0; team != nullptr && process < team->processes(); ++process) {
    if (process == team->rank()) continue;
    for (int64_t i = shards_of_process(shards, team->processes(), process).count; i > 0; --i)
      others.push_back(std::make_unique<RemoteShard>(process));
  }
  return others;
}

// Returns all shards of a minibatch in their order.
std::vector<Shard*> in_order(const std::vector<std::unique_ptr<DeviceMachine>>& machines,
                             const std::vector<std::unique_ptr<RemoteShard>>& others, size_t first) {
  std::vector<Shard*> shards;
  for (const auto& other : others) shards.push_back(other.get());
  for (size_t i = 0; i < machines.size(); ++i)
    shards.insert(shards.begin() + static_cast<std::ptrdiff_t>(first + i), machines[i].get());
  return shards;
}

std::vector<DeviceMachine*> pointers(const std::vector<std::unique_ptr<DeviceMachine>>& machines) {
  std::vector<DeviceMachine*> result;
  for (const auto& machine : machines) result.push_back(machine.get());
  return result;
}

}  // namespace

Machine::Machine(const Topology& topology, const std::shared_ptr<ParameterSet>& set, Registry& registry,
                 const std::vector<std::shared_ptr<Device>>& devices, const tn_parallel* parallel,
                 const MachineOptions& options)
    : max_samples_(options.max_samples),
      team_(options.team),
      first_shard_(static_cast<size_t>(own_shards(shards_of(devices, options), team_).first)),
      machines_(machines_on(topology, set, registry, devices, parallel, options)),
      others_(shards_elsewhere(shards_of(devices, options), team_)),
      shards_(in_order(machines_, others_, first_shard_), max_samples_, set->allocator()),
      team_sum_(team_ == nullptr
                    ? nullptr
                    : std::make_unique<TeamSum>(*team_, pointers(machines_), first_shard_, shards_.count())),
      step_(*machines_.front()) {}

Machine::~Machine() = default;

std::vector<std::shared_ptr<Device>> Machine::devices() const {
  std::vector<std::shared_ptr<Device>> result;
  for (const auto& machine : machines_) result.push_back(machine->device());
  return result;
}

void Machine::check_feeds(const std::vector<ArrayView>& arrays) const {
  static_cast<void>(FeedChecker(model(), std::numeric_limits<int64_t>::max()).check(arrays));
}

// Starts all machines, then waits for all. start, finish: called with the number of the shard.
template <typename Start, typename Finish>
void Machine::compute(const Start& start, const Finish& finish) {
  for (size_t i = 0; i < machines_.size(); ++i) start(i);
  for (size_t i = 0; i < machines_.size(); ++i) finish(i);
}

namespace {

// The shards of a minibatch. One that has all samples has the arrays as they are.
class Division {
 public:
  // Borrows everything. first: the number of the first machine's shard, of `shards`.
  Division(const std::vector<std::unique_ptr<DeviceMachine>>& machines, size_t first, size_t shards,
           const std::vector<ArrayView>& arrays, const MinibatchSizes& sizes) {
    const int64_t samples = sizes.symbols[TN_SYMBOL_SAMPLES];
    shards_.reserve(machines.size());
    for (size_t i = 0; i < machines.size(); ++i) {
      const ShardRange range = shard_range(samples, shards, first + i);
      if (range.count == samples) {
        shards_.push_back({arrays, sizes, sizes.symbols, 0});
      } else {
        const Part& part = parts_.emplace_back(machines[i]->model(), arrays, range);
        shards_.push_back({part.range.arrays(), part.sizes, sizes.symbols, range.first});
      }
    }
  }

  [[nodiscard]] const std::vector<DeviceMachine::Minibatch>& shards() const { return shards_; }

 private:
  struct Part {
    Part(const CompiledModel& model, const std::vector<ArrayView>& arrays, const ShardRange& cut)
        : range(arrays, cut.first, cut.count), sizes(FeedChecker(model, cut.count).sizes(range.arrays())) {}
    SampleRange range;
    MinibatchSizes sizes;
  };
  std::list<Part> parts_;
  std::vector<DeviceMachine::Minibatch> shards_;
};

}  // namespace

void Machine::forward(const std::vector<ArrayView>& arrays, FeedMode mode) {
  require_own();
  if (!set()->has_values())
    fail(TN_MISUSE, "the machine can only be planned: its parameters have no values, they were only declared");
  const MinibatchSizes sizes = FeedChecker(model(), max_samples_).check(arrays);
  const Division division(machines_, first_shard_, shards_.count(), arrays, sizes);
  const std::vector<DeviceMachine::Minibatch>& shards = division.shards();
  grow(shards);
  drop_outputs();
  shards_.drop_copies();
  shards_.cut_carried(sizes.symbols[TN_SYMBOL_SAMPLES]);
  try {
    compute([&](size_t i) { machines_[i]->start_forward(shards[i], mode, version_); },
            [&](size_t i) { machines_[i]->finish_forward(); });
  } catch (...) {
    for (const auto& machine : machines_) machine->abandon_forward();
    throw;
  }
  if (team_ != nullptr) share_results(sizes.symbols[TN_SYMBOL_SAMPLES]);
  values_ = Values::kForwarded;
}

void Machine::forward(SetGate& gate, const std::vector<ArrayView>& arrays, FeedMode mode) {
  const SetRead read(gate);
  set_version(read.version());
  forward(arrays, mode);
}

// Makes room for the rows of a minibatch. Changes nothing on failure, unless a machine before has lost its outputs.
void Machine::grow(const std::vector<DeviceMachine::Minibatch>& shards) {
  try {
    for (size_t i = 0; i < shards.size(); ++i) machines_[i]->grow(shards[i].sizes.symbols, i == 0 && step_.exist());
  } catch (...) {
    const bool lost =
        std::any_of(machines_.begin(), machines_.end(), [](const auto& machine) { return machine->samples() < 0; });
    if (lost) drop_outputs();
    throw;
  }
}

void Machine::drop_outputs() {
  for (const auto& machine : machines_) machine->drop_outputs();
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

void Machine::check_backward() const {
  require_own();
  if (!is_for_training()) fail(TN_MISUSE, "this machine was made without training; it has no backward");
  if (team_ != nullptr && step_.exist())
    fail(TN_UNSUPPORTED, "a second backward before an update cannot be divided among ", team_->processes(),
         " processes");
  if (values_ != Values::kForwarded) fail(TN_MISUSE, "backward needs a forward of its own that succeeded before it");
  if (!step_.updated().empty()) {
    const std::string& name = *step_.updated().begin();
    fail(TN_MISUSE, SubjectName{name}, "backward would add to gradients of which parameter \"", name,
         "\" has been updated; end the step first");
  }
}

void Machine::backward() {
  check_backward();
  if (first().options().given_gradients)
    fail(TN_MISUSE, "this machine was made for given gradients; its backward begins with gradients of outputs");
  run_backward();
}

// The other machines write their gradients anew each time, to be added to those of the first.
void Machine::run_backward() {
  const bool adds = step_.exist();
  for (size_t i = 0; i < machines_.size(); ++i) machines_[i]->prepare_backward(adds && i == 0);
  values_ = Values::kOverwritten;
  if (samples() > 0) {
    step_.drop();
    try {
      compute([&](size_t i) { machines_[i]->start_backward(adds && i == 0); },
              [&](size_t i) { machines_[i]->finish_backward(); });
      add_up();
    } catch (...) {
      for (const auto& machine : machines_) machine->access().finish();
      throw;
    }
    step_.set_accumulated();
  }
  values_ = Values::kDifferentiated;
}

// Gives the other processes what the shards of this one have measured, and takes what theirs have. samples: of the
// minibatch.
void Machine::share_results(int64_t samples) {
  size_t numbers = model().costs.size();  // of a shard: its costs, then the sums of its metrics
  for (const MetricUse& metric : metrics()) numbers += metric.state.size();
  const int64_t processes = team_->processes();
  const int64_t most = shards_of_process(shards_.count(), processes, 0).count;  // of a process
  const auto numbers_of_process = static_cast<size_t>(most) * numbers;
  std::vector<double> all(static_cast<size_t>(processes) * numbers_of_process);
  double* to = all.data() + static_cast<size_t>(team_->rank()) * numbers_of_process;
  for (const auto& machine : machines_) {
    for (const double cost : machine->costs()) *to++ = cost;
    for (const MetricUse& metric : metrics())
      for (const double sum : machine->metric_state(metric.layer)) *to++ = sum;
  }
  team_->gather(std::as_writable_bytes(std::span(all)));
  size_t other = 0;
  for (int64_t process = 0; process < processes; ++process) {
    if (process == team_->rank()) continue;
    const double* from = all.data() + static_cast<size_t>(process) * numbers_of_process;
    const ShardRange range = shards_of_process(shards_.count(), processes, process);
    for (int64_t i = 0; i < range.count; ++i) {
      std::vector<double> costs(from, from + model().costs.size());
      from += costs.size();
      std::vector<std::pair<LayerRef, std::vector<double>>> sums;
      for (const MetricUse& metric : metrics()) {
        sums.emplace_back(metric.layer, std::vector<double>(from, from + metric.state.size()));
        from += metric.state.size();
      }
      others_[other++]->set(shard_range(samples, shards_.count(), static_cast<size_t>(range.first + i)).count,
                            std::move(costs), std::move(sums));
    }
  }
}

// Adds up the gradients of all shards, and merges the next values of their buffers, in the first one: in a tree, whose
// nodes of one level compute at the same time. Shards without samples, the last ones, have nothing to add.
void Machine::add_up() {
  const int64_t all = samples();
  const ShardTree tree = tree_of(all, shards_.count());
  const size_t end = first_shard_ + machines_.size();
  for (const std::vector<ShardJoin>& level : tree.levels()) {
    const auto each_own = [&](const auto& work) {
      for (const ShardJoin& join : level)
        if (join.to >= first_shard_ && join.end <= end) work(join, *machines_[join.to - first_shard_]);
    };
    each_own([&](const ShardJoin& join, DeviceMachine& to) {
      to.add(*machines_[join.from - first_shard_], share_of(join, all, shards_.count()));
    });
    each_own([](const ShardJoin&, DeviceMachine& to) { to.wait(); });
  }
  if (team_sum_ != nullptr) team_sum_->run(all);
}

std::vector<std::string> Machine::cost_names() const {
  std::vector<std::string> names;
  for (const Cost& cost : model().costs) names.push_back(cost.name);
  return names;
}

ArrayView Machine::output(const LayerOutput& output) const {
  if (machines_.size() > 1) check_divided(output);
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

nlohmann::json Machine::describe() const {
  nlohmann::json result = first().describe();
  if (machines_.size() == 1) return result;
  result["max_samples"] = max_samples_;
  for (const auto& machine : machines_) result["devices"].push_back(machine->device()->name());
  result["shard_samples"] = first().options().max_samples;
  return result;
}

}  // namespace tenon::host
