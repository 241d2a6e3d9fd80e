// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/machine_tables.h"

namespace tenon::host {

MachineTables::MachineTables(Team* team, DeviceMachine& machine, size_t shards, StepGradients& step)
    : machine_(machine), owners_(team, *machine.set()), sum_(owners_, shards), owned_(step, machine) {
  step.set_owned(&owned_);
}

void MachineTables::fetch(const std::vector<const std::vector<ArrayView>*>& shards) {
  const CompiledModel& model = machine_.model();
  rows_.clear(model.tables.size());
  for (const std::vector<ArrayView>* const arrays : shards) rows_.add(model.tables, model.lowered.feeds, *arrays);
  rows_.finish();
  owners_.fetch(model.tables, rows_.tables());
}

void MachineTables::add_up(const ShardTree& tree, const std::map<size_t, ShardValues*>& own) {
  const CompiledModel& model = machine_.model();
  std::vector<TableSum::Source> sources;
  for (size_t number = 0; number < model.sparse_gradients.size(); ++number)
    for (size_t i = 0; i < model.tables.size(); ++i)
      if (model.sparse_gradients[number]->entry() == model.tables[i].entry)
        sources.push_back({&model.tables[i], &rows()[i], number});
  if (sources.empty()) return;
  const std::vector<RowTerms>& sums = sum_.run(tree, own, sources);
  for (size_t i = 0; i < sources.size(); ++i) owned_.take(*sources[i].table, sums[i]);
}

}  // namespace tenon::host
