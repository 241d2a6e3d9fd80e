// SPDX-License-Identifier: Apache-2.0
#include "host/cli/job/scope.h"

#include <algorithm>
#include <utility>

namespace tenon::cli {

Scope::Scope(std::string prefix, const Job& job) : prefix_(std::move(prefix)) {
  for (const auto& [block, of] : job.blocks)
    if (block.rfind(prefix_, 0) == 0) names_.insert(block.substr(prefix_.size()));
}

void Scope::take(const Node::List& tables) {
  for (const Node& table : tables)
    if (const std::string* name = table.text("name")) names_.insert(*name);
}

std::string Scope::outside(const std::string& name) const {
  const std::string whole = name.substr(0, std::min(name.rfind(':'), name.size()));
  return names_.contains(name) || names_.contains(whole) ? prefix_ + name : name;
}

JobLayer Scope::layer(const Node& table) const {
  JobLayer layer = layer_of(table);
  layer.name = prefix_ + layer.name;
  for (std::string& input : layer.inputs) input = outside(input);
  return layer;
}

void add_layers(std::vector<JobLayer> layers, const Section& top, Job& job, std::map<std::string, Place>& names) {
  for (JobLayer& layer : layers) {
    const auto [other, added] = names.emplace(layer.name, layer.place);
    if (!added) top.fail(layer.place, "layer \"" + layer.name + "\": the name is taken; see " + other->second);
    job.layers.push_back(std::move(layer));
  }
}

}  // namespace tenon::cli
