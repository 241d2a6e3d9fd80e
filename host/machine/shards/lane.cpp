// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/lane.h"

#include <utility>

namespace tenon::host {

Lane::Lane(std::unique_ptr<DeviceMachine> machine, const ShardSpan& shards, ShardSums& sums)
    : machine_(std::move(machine)), shards_(shards), sums_(sums) {
  for (size_t i = 0; count() > 1 && i < count(); ++i)
    records_.push_back(std::make_unique<ShardRecord>(
        "is not kept: a device computes several shards of a minibatch one after another; in a list of devices, of "
        "which each computes one shard, it is"));
}

Shard& Lane::shard(size_t place) {
  if (records_.empty()) return *machine_;
  return *records_[place];
}

void Lane::drop_outputs() {
  machine_->drop_outputs();
  for (const auto& record : records_) record->drop();
}

void Lane::record(size_t place) {
  if (records_.empty()) return;
  ShardRecord::MetricSums metrics;
  for (const MetricUse& metric : machine_->model().lowered.metrics)
    metrics.emplace_back(metric.layer, machine_->metric_state(metric.layer));
  records_[place]->set(machine_->samples(), machine_->costs(), std::move(metrics));
}

void Lane::clear_sums() {
  nodes_.clear();
  used_ = 0;
}

void Lane::keep_last() {
  if (nodes_.empty() || !is_in_machine(nodes_.back())) return;
  if (used_ == blocks_.size()) blocks_.push_back(std::make_unique<PartialSum>(*machine_));
  PartialSum& block = *blocks_[used_++];
  copy_values(block, *machine_);
  nodes_.back().values = &block;
}

std::vector<SummedNode> Lane::nodes_with(size_t place) const {
  std::vector<SummedNode> nodes = nodes_;
  const size_t shard = shards_.first + place;
  if (place < count() && machine_->samples() > 0) nodes.push_back({{shard, shard + 1}, machine_.get()});
  return nodes;
}

void Lane::add(size_t place, const ShardTree& tree, bool dense) {
  if (machine_->samples() == 0) return;
  nodes_ = nodes_with(place);
  ShardNodes chain;  // each is added to the one before it, the first one to the next `to`
  for (const ShardJoin* join = last_join(tree); join != nullptr;) {
    const SummedNode from = nodes_.back();
    nodes_.pop_back();
    SummedNode& to = nodes_.back();
    to.end = from.end;
    const double share = tree.share(*join);
    join = last_join(tree);
    chain.insert(chain.begin(), from.values);
    // The last join adds the dense gradients of all, so that memory is passed over once.
    const bool is_last = join == nullptr;
    ShardNodes nodes(chain.begin(), is_last ? chain.end() : chain.begin() + 1);
    nodes.insert(nodes.begin(), to.values);
    sums_.start(nodes, share, dense && is_last);
    if (!is_in_machine(from)) --used_;
  }
}

const ShardJoin* Lane::last_join(const ShardTree& tree) const {
  return nodes_.size() > 1 ? tree.join_of(nodes_[nodes_.size() - 2], nodes_.back()) : nullptr;
}

}  // namespace tenon::host
