// What a machine tells about its shards: results, outputs, plan. SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <nlohmann/json.hpp>

#include "host/machine/machine.h"

namespace tenon::host {

std::vector<std::shared_ptr<Device>> Machine::devices() const {
  std::vector<std::shared_ptr<Device>> result;
  for (const auto& lane : lanes_) result.insert(result.end(), lane->count(), lane->machine().device());
  return result;
}

std::vector<std::string> Machine::cost_names() const {
  std::vector<std::string> names;
  for (const Cost& cost : model().costs) names.push_back(cost.name);
  return names;
}

nlohmann::json Machine::describe() const {
  nlohmann::json result = first().describe();
  if (own_.count <= 1) return result;
  result["max_samples"] = max_samples_;
  for (nlohmann::json& gradient : result["row_gradients"])
    gradient["rows"] = gradient.at("rows").get<int64_t>() * own_.count;
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
