// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/machine_tables.h"

#include <utility>

namespace tenon::host {

void MachineTables::fetch(const std::vector<const std::vector<ArrayView>*>& shards) {
  rows_.clear(model().tables.size());
  for (const std::vector<ArrayView>* const arrays : shards) rows_.add(model().tables, model().lowered.feeds, *arrays);
  rows_.finish();
  bring(rows_.tables());
}

std::vector<TableSum::Source> MachineTables::sources() const {
  std::vector<TableSum::Source> sources;
  for (size_t number = 0; number < model().sparse_gradients.size(); ++number)
    for (size_t i = 0; i < model().tables.size(); ++i)
      if (model().sparse_gradients[number]->entry() == model().tables[i].entry)
        sources.push_back({&model().tables[i], &rows()[i], number});
  return sources;
}

TeamTables::TeamTables(Team* team, DeviceMachine& machine, size_t shards, StepGradients& step)
    : MachineTables(machine), owners_(team, *machine.set()), sum_(owners_, shards), owned_(step, machine) {
  step.set_owned(&owned_);
}

void TeamTables::add_up(const ShardTree& tree, const std::map<size_t, ShardValues*>& own) {
  const std::vector<TableSum::Source> sources = this->sources();
  if (sources.empty()) return;
  const std::vector<RowTerms>& sums = sum_.run(tree, own, sources);
  for (size_t i = 0; i < sources.size(); ++i) owned_.take(*sources[i].table, sums[i]);
}

void SourcedTables::add_up(const ShardTree& /*tree*/, const std::map<size_t, ShardValues*>& own) {
  for (const TableSum::Source& source : sources()) {
    const SparseGradientView view = own.at(0)->sparse_gradient(source.gradient).view();
    const auto* const places = static_cast<const int64_t*>(view.ids.data);
    const auto* const values = static_cast<const std::byte*>(view.values.data);
    const int64_t count = view.ids.shape[0];
    RowTerms gradient;
    for (int64_t i = 0; i < count; ++i) gradient.ids.push_back(source.rows->ids[static_cast<size_t>(places[i])]);
    gradient.values.assign(values, values + static_cast<size_t>(count * source.table->width) * sizeof(float));
    source_.take(static_cast<size_t>(source.table - model().tables.data()), std::move(gradient));
  }
}

}  // namespace tenon::host
