// SPDX-License-Identifier: Apache-2.0
#include "host/compile/fusion_patterns.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tenon::host {

namespace {

// Finds a chain from its end to its beginning.
class ChainSearch {
 public:
  ChainSearch(const std::vector<std::string>& types, const MayBeFused& may) : types_(types), may_(may) {}

  // Extends the chain, from its end to its beginning, by layers of the first `left` types. Returns whether it found
  // them.
  bool lengthen(Chain& chain, size_t left) {
    if (left == 0) return true;
    const LayerRef from = chain.back();
    if (!tried_.insert({from.get(), left}).second) return false;  // already tried without success
    for (const LayerOutput& input : from->inputs) {
      if (input.layer == nullptr) continue;
      const LayerRef source = resolved(input).layer;
      if (source->type != types_[left - 1] || !may_(*source, false)) continue;
      chain.push_back(source);
      if (lengthen(chain, left - 1)) return true;
      chain.pop_back();
    }
    return false;
  }

 private:
  const std::vector<std::string>& types_;
  const MayBeFused& may_;
  std::set<std::pair<const Layer*, size_t>> tried_;
};

// A list of leaves in which each comes after its inputs.
class Order {
 public:
  void add(const LayerRef& leaf) {
    std::vector<LayerRef> open = {leaf};
    while (!open.empty()) {
      const LayerRef at = open.back();
      if (added_.contains(at.get())) {
        open.pop_back();
        continue;
      }
      const size_t before = open.size();
      for (size_t i = at->inputs.size(); i-- > 0;)
        if (at->inputs[i].layer != nullptr)
          if (const LayerRef source = resolved(at->inputs[i]).layer; !added_.contains(source.get()))
            open.push_back(source);
      if (open.size() > before) continue;
      added_.insert(at.get());
      result.push_back(at);
      open.pop_back();
    }
  }

  std::vector<LayerRef> result;

 private:
  std::set<const Layer*> added_;
};

}  // namespace

Chain chain_to(const LayerRef& last, const std::vector<std::string>& types, const MayBeFused& may) {
  if (last->type != types.back() || !may(*last, true)) return {};
  Chain chain = {last};
  if (!ChainSearch(types, may).lengthen(chain, types.size() - 1)) return {};
  std::reverse(chain.begin(), chain.end());
  return chain;
}

std::vector<LayerRef> in_order_of_chains(const std::vector<LayerRef>& leaves, const std::vector<const Kernel*>& fusions,
                                         const MayBeFused& may) {
  std::map<const Layer*, std::vector<LayerRef>> ends;  // per first leaf of chains: their last leaves
  for (const LayerRef& leaf : leaves)
    for (const Kernel* kernel : fusions)
      if (const Chain chain = chain_to(leaf, kernel->chain, may); !chain.empty())
        ends[chain.front().get()].push_back(leaf);
  Order order;
  for (const LayerRef& leaf : leaves) {
    if (const auto chains = ends.find(leaf.get()); chains != ends.end())
      for (const LayerRef& end : chains->second) order.add(end);
    order.add(leaf);
  }
  return std::move(order.result);
}

std::shared_ptr<KernelSite> fusion_site(const Kernel& kernel, const Chain& chain,
                                        std::vector<std::shared_ptr<KernelSite>> members) {
  auto group = std::make_shared<KernelSite>();
  auto fusion = std::make_shared<FusionSite>();
  std::vector<uint8_t> gradients, parameter_gradients;
  group->kernel = &kernel;
  group->layer = chain.back();
  for (size_t i = 0; i < chain.size(); ++i) {
    const KernelSite& member = *members[i];
    std::vector<tn_fusion_source>& sources = fusion->sources.emplace_back();
    for (size_t k = 0; k < member.inputs.size(); ++k) {
      const LayerOutput& input = chain[i]->inputs[k];
      const LayerOutput source = input.layer == nullptr ? input : resolved(input);
      const auto maker = std::find(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(i), source.layer);
      if (input.layer != nullptr && maker - chain.begin() < static_cast<std::ptrdiff_t>(i)) {
        sources.push_back({static_cast<int32_t>(maker - chain.begin()), source.output});
        continue;
      }
      sources.push_back({-1, static_cast<uint32_t>(group->inputs.size())});
      group->inputs.push_back(member.inputs[k]);
      group->absent.push_back(member.absent[k]);
      gradients.push_back(member.gradients[k]);
    }
    parameter_gradients.insert(parameter_gradients.end(),
                               member.gradients.begin() + static_cast<std::ptrdiff_t>(member.inputs.size()),
                               member.gradients.end());
    group->outputs.insert(group->outputs.end(), member.outputs.begin(), member.outputs.end());
    group->parameters.insert(group->parameters.end(), member.parameters.begin(), member.parameters.end());
    fusion->layer_pointers.push_back(&member.site);
  }
  for (const auto& sources : fusion->sources) fusion->source_pointers.push_back(sources.data());
  fusion->site = {sizeof fusion->site, static_cast<uint32_t>(chain.size()), fusion->layer_pointers.data(),
                  fusion->source_pointers.data()};
  group->gradients = std::move(gradients);
  group->gradients.insert(group->gradients.end(), parameter_gradients.begin(), parameter_gradients.end());
  fusion->layers = std::move(members);
  group->fusion = std::move(fusion);
  return group;
}

std::set<std::string> types_of(const Topology& topology) {
  std::set<std::string> types;
  for (const LayerRef& leaf : topology.leaves) types.insert(leaf->type);
  return types;
}

}  // namespace tenon::host
