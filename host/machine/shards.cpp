// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "core/error.h"
#include "host/machine/sample_range.h"

namespace tenon::host {

namespace {

std::string listed(const std::vector<std::shared_ptr<Device>>& devices) {
  std::string result;
  for (const std::shared_ptr<Device>& device : devices)
    result += text(result.empty() ? "" : ", ", "\"", device->name(), "\"");
  return result;
}

}  // namespace

MachineOptions options_of_shard(const MachineOptions& options, const std::vector<std::shared_ptr<Device>>& devices,
                                size_t number) {
  const auto shards = static_cast<int64_t>(devices.size());
  if (shards > 1 && options.max_samples >= 1 && options.max_samples < shards)
    fail(TN_INVALID, SubjectName{"devices"}, "a minibatch of at most ", options.max_samples,
         options.max_samples == 1 ? " sample" : " samples", " is smaller than the list of devices, ", listed(devices),
         ": each computes a shard of it");
  MachineOptions result = options;
  if (options.max_samples >= 1) result.max_samples = shard_range(options.max_samples, devices.size(), 0).count;
  result.shard = static_cast<uint32_t>(number);
  return result;
}

ShardRange shard_range(int64_t samples, size_t shards, size_t number) {
  const auto parts = static_cast<int64_t>(shards), at = static_cast<int64_t>(number);
  const int64_t least = samples / parts, larger = samples % parts;
  return {at * least + std::min(at, larger), least + (at < larger ? 1 : 0)};
}

Shards::Shards(Machine& first, std::vector<std::unique_ptr<Machine>> others) : others_(std::move(others)) {
  machines_.push_back(&first);
  for (const auto& other : others_) machines_.push_back(other.get());
  check();
}

void Shards::check() const {
  const Machine& first = *machines_.front();
  const Graph& graph = first.model_.calls->graph();
  const std::string on = "on several devices, " + listed(devices());
  if (first.options_.given_gradients)
    fail(TN_UNSUPPORTED, SubjectName{"devices"}, "given gradients cannot be divided among shards ", on);
  for (const CarriedUse& use : first.model_.lowered.carried) {
    const Shape& shape = graph.spec(use.now).shape;
    if (shape.empty() || shape[0].symbol == TN_SYMBOL_NONE)
      fail(TN_UNSUPPORTED, SubjectName{"devices"},
           "a state that is carried to the next minibatch, and that all its samples share, cannot be divided ", on);
  }
  for (const Cost& cost : first.model_.costs) {
    const auto rows = graph.rows.find(graph.spec(cost.per_sample).shape[0].symbol);
    if (rows == graph.rows.end() || rows->second.count == kNoValue) continue;
    const int32_t maker = graph.values[static_cast<size_t>(cost.mean)].producer;
    const std::string& layer = graph.layers[static_cast<size_t>(graph.nodes[static_cast<size_t>(maker)].layer)];
    fail(TN_UNSUPPORTED, SubjectName{layer}, "cost layer \"", layer,
         "\" is a mean over rows whose number a layer finds; it cannot be divided ", on);
  }
}

std::vector<std::shared_ptr<Device>> Shards::devices() const {
  std::vector<std::shared_ptr<Device>> result;
  for (const Machine* machine : machines_) result.push_back(machine->device());
  return result;
}

// Starts all machines, then waits for all. start, finish: called with the number of the shard.
template <typename Start, typename Finish>
void Shards::compute(const Start& start, const Finish& finish) {
  try {
    for (size_t i = 0; i < machines_.size(); ++i) start(i);
    for (size_t i = 0; i < machines_.size(); ++i) finish(i);
  } catch (...) {
    for (const Machine* machine : machines_) machine->access_->finish();
    throw;
  }
}

void Shards::forward(const std::vector<ArrayView>& arrays, const std::vector<int64_t>& whole, FeedMode mode) {
  const int64_t samples = whole[TN_SYMBOL_SAMPLES];
  machines_.front()->drop_outputs();
  joined_.clear();
  cut_carried(samples);
  if (samples > 0) carried_samples_ = samples;
  try {
    const auto start = [&](size_t i) {
      Machine& machine = *machines_[i];
      const ShardRange part = shard_range(samples, machines_.size(), i);
      const SampleRange range(arrays, part.first, part.count);
      machine.version_ = machines_.front()->version_;
      machine.first_sample_ = part.first;
      machine.start_forward(range.arrays(), FeedChecker(machine.model_, part.count).sizes(range.arrays()), whole, mode);
    };
    compute(start, [&](size_t i) { machines_[i]->finish_forward(); });
  } catch (...) {
    for (Machine* machine : machines_)  // the next forward begins with the states with which this one began
      if (machine->samples_ >= 0) machine->carried_samples_ = 0;
    machines_.front()->drop_outputs();
    throw;
  }
}

void Shards::backward() {
  try {
    compute([&](size_t i) { machines_[i]->start_backward(); }, [&](size_t i) { machines_[i]->finish_backward(); });
    add_up();
  } catch (...) {
    for (Machine* machine : machines_) {
      machine->access_->finish();
      machine->accumulated_ = false;
    }
    throw;
  }
}

// Adds up gradients and merges buffers in a tree: shard 1 into shard 0, 3 into 2, ..., then 2 into 0, 6 into 4, ...;
// the machines of one level compute at the same time. Shards without samples, the last ones, have nothing to add.
void Shards::add_up() {
  std::vector<int64_t> samples;  // of the shards that each sum has
  for (const Machine* machine : machines_)
    if (machine->samples_ > 0) samples.push_back(machine->samples_);
  const size_t count = samples.size();
  for (size_t step = 1; step < count; step *= 2) {
    for (size_t i = step; i < count; i += 2 * step) {
      std::unique_ptr<ShardSum>& sum = sums_[i];
      if (sum == nullptr) sum = std::make_unique<ShardSum>(*machines_[i - step], *machines_[i]);
      samples[i - step] += samples[i];
      sum->start(static_cast<double>(samples[i]) / static_cast<double>(samples[i - step]));
    }
    for (size_t i = step; i < count; i += 2 * step) machines_[i - step]->access_->wait();
  }
  for (const auto& other : others_) other->accumulated_ = false;
}

void Shards::drop_outputs() {
  for (const auto& other : others_) other->drop_outputs();
}

int64_t Shards::samples() const {
  int64_t sum = 0;
  for (const Machine* machine : machines_) sum += machine->samples_;
  return machines_.front()->samples_ < 0 ? -1 : sum;
}

double Shards::cost() const {
  double sum = 0;
  for (const Machine* machine : machines_) sum += machine->own_cost();
  return sum;
}

std::vector<double> Shards::costs() const {
  std::vector<double> sums;
  for (const Machine* machine : machines_) {
    const std::vector<double> costs = machine->own_costs();
    sums.resize(costs.size());
    for (size_t i = 0; i < costs.size(); ++i) sums[i] += costs[i];
  }
  return sums;
}

std::vector<double> Shards::metric_state(const LayerRef& metric) const {
  std::vector<double> sum = machines_.front()->own_metric_state(metric);
  for (const auto& other : others_) {
    const std::vector<double> state = other->own_metric_state(metric);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += state[i];
  }
  return sum;
}

void Shards::reset_carried() {
  for (Machine* machine : machines_) machine->reset_own_carried();
  carried_samples_ = 0;
}

Machine::Carried Shards::carried() const {
  Machine::Carried result = machines_.front()->own_carried();
  for (const auto& other : others_) {
    const Machine::Carried part = other->own_carried();
    result.samples += part.samples;
    for (size_t i = 0; i < result.values.size(); ++i)
      result.values[i].insert(result.values[i].end(), part.values[i].begin(), part.values[i].end());
  }
  return result;
}

// The states of a machine with as many samples at most, cut for the next minibatch of as many samples.
void Shards::set_carried(const Machine::Carried& carried) {
  const int64_t most = machines_.front()->max_samples_;
  if (carried.samples < 0 || carried.samples > most)
    fail(TN_BAD_DATA, "carried states of ", carried.samples, " samples; the machine has room for ", most);
  std::vector<Machine::Carried> parts;
  for (size_t i = 0; i < machines_.size(); ++i) {
    const ShardRange range = shard_range(carried.samples, machines_.size(), i);
    Machine::Carried& part = parts.emplace_back();
    part.samples = range.count;
    for (const std::vector<std::byte>& values : carried.values) {
      const size_t samples = static_cast<size_t>(std::max<int64_t>(carried.samples, 1)),
                   sample = values.size() / samples;
      if (values.size() % samples != 0)
        fail(TN_BAD_DATA, "a carried state of ", samples, " samples has ", values.size(), " bytes");
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(sample * static_cast<size_t>(range.first));
      part.values.emplace_back(first, first + static_cast<std::ptrdiff_t>(sample * static_cast<size_t>(range.count)));
    }
  }
  for (size_t i = 0; i < machines_.size(); ++i) machines_[i]->set_own_carried(parts[i]);
  carried_samples_ = carried.samples;
}

// Gives each shard the states of its samples if the minibatch is cut otherwise than the one before.
void Shards::cut_carried(int64_t samples) {
  const bool carries = !machines_.front()->model_.lowered.carried.empty() && carried_samples_ > 0;
  if (!carries || samples == 0 || samples == carried_samples_) return;
  Machine::Carried whole = carried();
  if (whole.samples == 0) return reset_carried();
  const auto before = static_cast<size_t>(whole.samples), now = static_cast<size_t>(samples);
  for (std::vector<std::byte>& values : whole.values)
    values.resize(values.size() / before * now);  // zeros for samples that it did not have
  whole.samples = samples;
  set_carried(whole);
}

// ---- outputs

ArrayView Shards::output(const LayerOutput& output) {
  const std::string name = output_name(output);
  std::vector<ArrayView> parts{machines_.front()->own_output(output)};
  const Graph& graph = machines_.front()->model_.calls->graph();
  const Shape& shape = graph.spec(machines_.front()->model_.lowered.value_of(output)).shape;
  if (shape.empty() || shape[0].symbol == TN_SYMBOL_NONE)
    fail(TN_UNSUPPORTED, SubjectName{name}, "the output of layer \"", name,
         "\" has no dimension of samples: each of the devices ", listed(devices()), " has one of its shard");
  for (const auto& other : others_)
    if (other->samples_ > 0) parts.push_back(other->own_output(output));
  return join(name, parts);
}

ArrayView Shards::data_gradient(const std::string& data_layer) {
  std::vector<ArrayView> parts{machines_.front()->own_data_gradient(data_layer)};
  for (const auto& other : others_)
    if (other->samples_ > 0) parts.push_back(other->own_data_gradient(data_layer));
  return join("gradient of " + data_layer, parts);
}

// Returns the parts one behind the other, copied.
ArrayView Shards::join(const std::string& name, const std::vector<ArrayView>& parts) {
  Joined& joined = joined_[name];
  ArrayView result = parts.front();
  result.shape[0] = result.samples = 0;
  for (std::vector<int64_t>& offsets : joined.offsets) offsets.assign(1, 0);
  for (const ArrayView& part : parts) {
    result.shape[0] += part.shape[0];
    result.samples += part.samples;
    int64_t count = part.samples;  // of sequences at this level
    for (size_t level = 0; level < part.levels; ++level) {
      const int64_t* const from = part.offsets[level];
      std::vector<int64_t>& to = joined.offsets[level];
      const int64_t before = to.back();
      for (int64_t i = 1; i <= count; ++i) to.push_back(before + from[i]);
      count = count == 0 ? 0 : from[count];
    }
  }
  joined.values = Buffer(machines_.front()->access_->allocator(), element_bytes(result));
  std::byte* to = joined.values.data();
  for (const ArrayView& part : parts) {
    copy_elements(part, to);
    to += element_bytes(part);
  }
  result.data = joined.values.data();
  for (size_t level = 0; level < result.levels; ++level) result.offsets[level] = joined.offsets[level].data();
  return result;
}

}  // namespace tenon::host
