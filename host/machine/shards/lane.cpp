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
  while (nodes_.size() > 1) {
    SummedNode& to = nodes_[nodes_.size() - 2];
    const SummedNode& from = nodes_.back();
    const ShardJoin* const join = tree.join_of(to, from);
    if (join == nullptr) return;
    sums_.start(*to.values, *from.values, tree.share(*join), dense);
    if (!is_in_machine(from)) --used_;
    to.end = from.end;
    nodes_.pop_back();
  }
}

}  // namespace tenon::host
