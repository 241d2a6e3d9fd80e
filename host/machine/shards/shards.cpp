// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/shards.h"

#include <algorithm>

#include "core/error.h"

namespace tenon::host {

Shards::Shards(std::vector<Shard*> shards, int64_t max_samples, std::shared_ptr<Allocator> allocator)
    : shards_(std::move(shards)), max_samples_(max_samples), allocator_(std::move(allocator)) {}

// ---- sums

int64_t Shards::samples() const {
  int64_t sum = 0;
  for (const Shard* shard : shards_) sum += shard->samples();
  return shards_.front()->samples() < 0 ? -1 : sum;
}

double Shards::cost() const {
  double sum = 0;
  for (const Shard* shard : shards_) sum += shard->cost();
  return sum;
}

namespace {

void add_to(std::vector<double>& sums, const std::vector<double>& values) {
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
}

}  // namespace

std::vector<double> Shards::costs() const {
  std::vector<double> sums = shards_.front()->costs();
  for (size_t i = 1; i < shards_.size(); ++i) add_to(sums, shards_[i]->costs());
  return sums;
}

std::vector<double> Shards::metric_state(const LayerRef& metric) const {
  std::vector<double> sums = shards_.front()->metric_state(metric);
  for (size_t i = 1; i < shards_.size(); ++i) add_to(sums, shards_[i]->metric_state(metric));
  return sums;
}

// ---- carried states

void Shards::reset_carried() {
  for (Shard* shard : shards_) shard->reset_carried();
  carried_samples_ = 0;
}

CarriedStates Shards::carried() const {
  CarriedStates result = shards_.front()->carried();
  for (size_t i = 1; i < shards_.size(); ++i) {
    const CarriedStates part = shards_[i]->carried();
    result.samples += part.samples;
    for (size_t k = 0; k < result.values.size(); ++k)
      result.values[k].insert(result.values[k].end(), part.values[k].begin(), part.values[k].end());
  }
  return result;
}

namespace {

// Returns the states of a part of the samples.
CarriedStates cut(const CarriedStates& carried, const ShardRange& range) {
  if (range.count == carried.samples) return carried;
  CarriedStates part;
  part.samples = range.count;
  for (const std::vector<std::byte>& values : carried.values) {
    const auto samples = static_cast<size_t>(carried.samples);
    const size_t sample = values.size() / samples;
    if (values.size() % samples != 0)
      fail(TN_BAD_DATA, "a carried state of ", samples, " samples has ", values.size(), " bytes");
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(sample * static_cast<size_t>(range.first));
    part.values.emplace_back(first, first + static_cast<std::ptrdiff_t>(sample * static_cast<size_t>(range.count)));
  }
  return part;
}

}  // namespace

void Shards::set_carried(const CarriedStates& carried) {
  if (carried.samples < 0 || carried.samples > max_samples_)
    fail(TN_BAD_DATA, "carried states of ", carried.samples, " samples; the machine has room for ", max_samples_);
  std::vector<CarriedStates> parts;
  for (size_t i = 0; i < shards_.size(); ++i)
    parts.push_back(cut(carried, shard_range(carried.samples, shards_.size(), i)));
  for (size_t i = 0; i < shards_.size(); ++i) shards_[i]->set_carried(parts[i]);
  carried_samples_ = carried.samples;
}

void Shards::cut_carried(int64_t samples) {
  if (samples == 0) return;
  const bool fits = carried_samples_ == 0 || is_cut_alike(samples, carried_samples_);
  if (!fits) {
    CarriedStates states = carried();
    if (states.values.empty() || states.samples == 0) {
      reset_carried();
    } else {
      const auto before = static_cast<size_t>(states.samples), now = static_cast<size_t>(samples);
      for (std::vector<std::byte>& values : states.values)
        values.resize(values.size() / before * now);  // zeros for samples that it did not have
      states.samples = samples;
      set_carried(states);
    }
  }
  carried_samples_ = samples;
}

// Whether each shard begins with the same sample in two minibatches, or has none in both.
bool Shards::is_cut_alike(int64_t samples, int64_t before) const {
  for (size_t i = 0; i < shards_.size(); ++i) {
    const ShardRange range = shard_range(samples, shards_.size(), i), other = shard_range(before, shards_.size(), i);
    const bool has_samples = range.count > 0, had_samples = other.count > 0;
    if (has_samples != had_samples || (has_samples && range.first != other.first)) return false;
  }
  return true;
}

// ---- joined values

ArrayView Shards::output(const LayerOutput& output) const {
  const auto part = [&](const Shard& shard) { return shard.output(output); };
  return joined([&] { return output_name(output); }, part);
}

ArrayView Shards::data_gradient(size_t feed, const std::string& name) const {
  const auto part = [&](const Shard& shard) { return shard.data_gradient(feed); };
  return joined([&] { return "gradient of " + name; }, part);
}

// Returns the parts one behind the other, copied unless the first shard has them all. name: returns that of the value.
template <typename Name, typename Part>
ArrayView Shards::joined(const Name& name, const Part& part) const {
  std::vector<const Shard*> others;  // with samples
  for (size_t i = 1; i < shards_.size(); ++i)
    if (shards_[i]->samples() > 0) others.push_back(shards_[i]);
  if (others.empty()) return part(*shards_.front());
  std::vector<ArrayView> parts{part(*shards_.front())};
  for (const Shard* shard : others) parts.push_back(part(*shard));
  Joined& copy = joined_[name()];
  ArrayView result = parts.front();
  result.shape[0] = result.samples = 0;
  for (std::vector<int64_t>& offsets : copy.offsets) offsets.assign(1, 0);
  for (const ArrayView& each : parts) {
    result.shape[0] += each.shape[0];
    result.samples += each.samples;
    int64_t count = each.samples;  // of sequences at this level
    for (size_t level = 0; level < each.levels; ++level) {
      const int64_t* const from = each.offsets[level];
      std::vector<int64_t>& to = copy.offsets[level];
      const int64_t before = to.back();
      for (int64_t i = 1; i <= count; ++i) to.push_back(before + from[i]);
      count = count == 0 ? 0 : from[count];
    }
  }
  copy.values = Buffer(allocator_, element_bytes(result));
  std::byte* to = copy.values.data();
  for (const ArrayView& each : parts) {
    copy_elements(each, to);
    to += element_bytes(each);
  }
  result.data = copy.values.data();
  for (size_t level = 0; level < result.levels; ++level) result.offsets[level] = copy.offsets[level].data();
  return result;
}

}  // namespace tenon::host
