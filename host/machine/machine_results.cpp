// What a machine tells about its shards: results, outputs, plan. SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <nlohmann/json.hpp>

#include "host/comm/team.h"
#include "host/machine/machine.h"
#include "host/machine/shards/shard_tree.h"

namespace tenon::host {

std::vector<std::shared_ptr<Device>> Machine::devices() const {
  std::vector<std::shared_ptr<Device>> result;
  for (const auto& lane : lanes_) result.insert(result.end(), lane->count(), lane->machine().device());
  return result;
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
  for (const auto& lane : lanes_)
    for (size_t i = 0; i < lane->count(); ++i) {
      const Shard& shard = lane->shard(i);
      for (const double cost : shard.costs()) *to++ = cost;
      for (const MetricUse& metric : metrics())
        for (const double sum : shard.metric_state(metric.layer)) *to++ = sum;
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
      ShardRecord::MetricSums sums;
      for (const MetricUse& metric : metrics()) {
        sums.emplace_back(metric.layer, std::vector<double>(from, from + metric.state.size()));
        from += metric.state.size();
      }
      others_[other++]->set(shard_range(samples, shards_.count(), static_cast<size_t>(range.first + i)).count,
                            std::move(costs), std::move(sums));
    }
  }
}

std::vector<std::string> Machine::cost_names() const {
  std::vector<std::string> names;
  for (const Cost& cost : model().costs) names.push_back(cost.name);
  return names;
}

nlohmann::json Machine::describe() const {
  nlohmann::json result = first().describe();
  if (own_.count == 1) return result;
  result["max_samples"] = max_samples_;
  for (const auto& lane : lanes_) result["devices"].push_back(lane->machine().device()->name());
  result["shard_samples"] = first().options().max_samples;
  const size_t in_turn = lanes_.front()->count();
  if (in_turn == 1) return result;
  result["shards_in_turn"] = in_turn;
  nlohmann::json& bytes = result["bytes"];
  const auto sums = static_cast<uint64_t>(std::bit_width(in_turn) - 1);  // as many as a binary number below has ones
  bytes["sums"] = sums * (bytes.at("gradients").get<uint64_t>() + bytes.at("row_sparse").get<uint64_t>());
  bytes["machine"] = bytes.at("machine").get<uint64_t>() + bytes.at("sums").get<uint64_t>();
  return result;
}

}  // namespace tenon::host
