// The backward of a machine, and the sum over the shards. SPDX-License-Identifier: Apache-2.0
#include <map>

#include "core/error.h"
#include "host/comm/team.h"
#include "host/machine/machine.h"
#include "host/machine/shards/shard_tree.h"
#include "host/machine/shards/team_results.h"
#include "host/machine/shards/team_sum.h"
#include "host/machine/tables/machine_tables.h"

namespace tenon::host {

void Machine::check_trainable() const {
  require_own();
  if (!is_for_training()) fail(TN_MISUSE, "this machine was made without training; it has no backward");
  if (team_ != nullptr && step_.exist())
    fail(TN_UNSUPPORTED, "a second backward before an update cannot be divided among ", team_->processes(),
         " processes");
  if (tables_ != nullptr && step_.exist())
    fail(TN_UNSUPPORTED,
         "a second backward before an update cannot add to the gradients of tables, whose rows are those of "
         "another minibatch");
  if (!step_.updated().empty()) {
    const std::string& name = *step_.updated().begin();
    fail(TN_MISUSE, SubjectName{name}, "backward would add to gradients of which parameter \"", name,
         "\" has been updated; end the step first");
  }
}

void Machine::check_backward() const {
  check_trainable();
  if (values_ != Values::kForwarded) fail(TN_MISUSE, "backward needs a forward of its own that succeeded before it");
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
  if (samples() > 0) {
    const ShardTree tree(samples(), shards_.count());
    for (const auto& lane : lanes_) lane->clear_sums();
    backward_round(0, adds, tree);
    add_up(tree);
    step_.set_accumulated();
  }
  values_ = Values::kDifferentiated;
}

// Begins the sum of dense gradients over all processes before the backward of the last round, if they can travel
// meanwhile. Returns what to call when some are final; null: nothing.
DeviceMachine::Final Machine::begin_team_sum(size_t round, const ShardTree& tree) {
  if (!overlaps() || round + 1 < rounds()) return nullptr;
  std::vector<SummedNode> nodes;
  for (const auto& lane : lanes_)
    for (const SummedNode& node : lane->nodes_with(round)) nodes.push_back(node);
  team_sum_->begin(tree, nodes);
  return [this](uint64_t offset, uint64_t bytes) { team_sum_->add_final(offset, bytes); };
}

// adds: the first machine, to the gradients so far. Drops them, once they begin to change. Dense gradients are final
// when the last machine has written them: where the host addresses the memory, one computes after the other.
void Machine::backward_round(size_t round, bool adds, const ShardTree& tree) {
  const auto adds_to = [&](const Lane& lane) { return adds && &lane == lanes_.front().get(); };
  const auto each = [&](const auto& work) { compute(round, work, [](Lane&) {}); };
  const Lane* last = nullptr;
  each([&](Lane& lane) {
    lane.machine().prepare_backward(adds_to(lane));
    last = &lane;
  });
  values_ = Values::kOverwritten;
  step_.drop();
  try {
    const DeviceMachine::Final final = begin_team_sum(round, tree);
    compute(
        round, [&](Lane& lane) { lane.machine().start_backward(adds_to(lane), &lane == last ? final : nullptr); },
        [&](Lane& lane) { lane.machine().finish_backward(); });
    each([&](Lane& lane) { lane.add(round, tree, final == nullptr); });
  } catch (...) {
    finish_work();
    throw;
  }
}

void Machine::finish_work() noexcept {
  for (const auto& lane : lanes_) lane->machine().access().finish();
  if (team_ == nullptr) return;
  team_results_->end();
  team_sum_->end();
}

bool Machine::overlaps() const { return team_sum_ != nullptr && team_sum_->overlaps(); }

// Adds up what the lanes have, as far as this process has both sides of a join, and then with the other processes, in
// the first machine: nodes of one level of the tree are computed at the same time. Shards without samples, the last
// ones, have nothing to add.
void Machine::add_up(const ShardTree& tree) {
  std::map<size_t, ShardValues*> nodes;  // by their first shard
  for (const auto& lane : lanes_)
    for (const SummedNode& node : lane->nodes()) nodes.emplace(node.first, node.values);
  const auto first_shard = static_cast<size_t>(own_.first), end = first_shard + static_cast<size_t>(own_.count);
  try {
    for (const std::vector<ShardJoin>& level : tree.levels()) {
      std::vector<ShardJoin> joins;
      for (const ShardJoin& join : level)
        if (join.to >= first_shard && join.end <= end && nodes.contains(join.from)) joins.push_back(join);
      for (const ShardJoin& join : joins)
        sums_.start(*nodes.at(join.to), *nodes.at(join.from), tree.share(join), !overlaps());
      for (const ShardJoin& join : joins) {
        nodes.at(join.to)->machine().wait();
        nodes.erase(join.from);
      }
    }
    if (tables_ != nullptr || team_sum_ != nullptr)
      for (const auto& node : nodes) node.second->machine().wait();
    if (tables_ != nullptr) tables_->add_up(tree, nodes);
    if (team_sum_ != nullptr) {
      team_sum_->run(tree, nodes);
    } else if (nodes.at(0) != &first()) {
      copy_values(first(), *nodes.at(0));
      first().wait();
    }
    first().set_summed();
  } catch (...) {
    finish_work();
    throw;
  }
}

}  // namespace tenon::host
