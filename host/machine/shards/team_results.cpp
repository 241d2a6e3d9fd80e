// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/team_results.h"

#include <span>
#include <utility>

#include "host/machine/shards/shard_tree.h"

namespace tenon::host {

TeamResults::TeamResults(Team& team, const std::vector<std::unique_ptr<Lane>>& lanes,
                         const std::vector<std::unique_ptr<ShardRecord>>& others)
    : team_(team),
      model_(lanes.front()->machine().model()),
      others_(others),
      shards_(others.size()),
      numbers_(model_.costs.size()) {
  for (const auto& lane : lanes)
    for (size_t i = 0; i < lane->count(); ++i) own_.push_back(&lane->shard(i));
  shards_ += own_.size();
  for (const MetricUse& metric : model_.lowered.metrics) numbers_ += metric.state.size();
}

template <typename Work>
void TeamResults::each_other(const Work& work) {
  const size_t of_process = all_.size() / static_cast<size_t>(team_.processes());
  auto record = others_.begin();
  for (int64_t process = 0; process < team_.processes(); ++process) {
    if (process == team_.rank()) continue;
    const ShardRange range = shards_of_process(shards_, team_.trainers(), process);
    const double* numbers = all_.data() + static_cast<size_t>(process) * of_process;
    for (int64_t i = 0; i < range.count; ++i, numbers += numbers_)
      work(**record++, static_cast<size_t>(range.first + i), numbers);
  }
}

void TeamResults::begin(int64_t samples) {
  end();
  samples_ = samples;
  const auto most = static_cast<size_t>(shards_of_process(shards_, team_.trainers(), 0).count);  // of a process
  all_.assign(static_cast<size_t>(team_.processes()) * most * numbers_, 0);
  double* to = all_.data() + static_cast<size_t>(team_.rank()) * most * numbers_;
  for (const Shard* shard : own_) {
    for (const double cost : shard->costs()) *to++ = cost;
    for (const MetricUse& metric : model_.lowered.metrics)
      for (const double sum : shard->metric_state(metric.layer)) *to++ = sum;
  }
  transfers_ = team_.begin_gather(std::as_writable_bytes(std::span(all_)));
  each_other([&](ShardRecord& record, size_t shard, const double*) {
    record.set(shard_range(samples_, shards_, shard).count, {}, {});
  });
}

void TeamResults::finish() {
  transfers_.wait();
  each_other([&](ShardRecord& record, size_t shard, const double* numbers) {
    std::vector<double> costs(numbers, numbers + model_.costs.size());
    numbers += costs.size();
    ShardRecord::MetricSums sums;
    for (const MetricUse& metric : model_.lowered.metrics) {
      sums.emplace_back(metric.layer, std::vector<double>(numbers, numbers + metric.state.size()));
      numbers += metric.state.size();
    }
    record.set(shard_range(samples_, shards_, shard).count, std::move(costs), std::move(sums));
  });
}

}  // namespace tenon::host
