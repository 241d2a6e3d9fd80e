// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/machine_tables.h"

#include <utility>

#include "host/machine/sample_range.h"

namespace tenon::host {

void MachineTables::collect(const Samples& samples, TableIds& ids) const {
  const auto begin_of = [&](int64_t shard) {
    const auto number = static_cast<size_t>(shard);
    return number == shards_ ? samples.count : shard_range(samples.count, shards_, number).first;
  };
  const int64_t begin = begin_of(own_.first), count = begin_of(own_.first + own_.count) - begin;
  ids.assign(model().tables.size(), {});
  if (count == 0) return;
  const SampleRange own(samples.arrays, begin - samples.first, count);
  collect_ids(model().tables, model().lowered.feeds, own.arrays(), ids);
}

std::vector<TableSum::Source> MachineTables::sources() const {
  std::vector<TableSum::Source> sources;
  for (size_t number = 0; number < model().sparse_gradients.size(); ++number)
    for (size_t i = 0; i < model().tables.size(); ++i)
      if (model().sparse_gradients[number]->entry() == model().tables[i].entry)
        sources.push_back({&model().tables[i], &rows()[i], number});
  return sources;
}

TeamTables::TeamTables(Team* team, DeviceMachine& machine, size_t shards, ShardRange own, StepGradients& step)
    : MachineTables(machine, shards, own),
      owners_(team, *machine.set()),
      fetch_(owners_, model().tables),
      sum_(owners_, shards),
      owned_(step, machine) {
  step.set_owned(&owned_);
}

void TeamTables::fetch(const Samples& samples) {
  if (!fetch_.is_asked()) {
    collect(samples, scratch());
    ask(scratch());
  }
  fetch_.fetch();
}

void TeamTables::add_up(const ShardTree& tree, const std::map<size_t, ShardValues*>& own) {
  const std::vector<TableSum::Source> sources = this->sources();
  if (sources.empty()) return;
  const std::vector<RowTerms>& sums = sum_.run(tree, own, sources);
  for (size_t i = 0; i < sources.size(); ++i) owned_.take(*sources[i].table, sums[i]);
}

void SourcedTables::fetch(const Samples& samples) {
  collect(samples, scratch());
  rows_.resize(scratch().size());
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i].ids.swap(scratch()[i]);
  source_.fetch(model().tables, rows_);
}

void SourcedTables::add_up(const ShardTree& /*tree*/, const std::map<size_t, ShardValues*>& own) {
  for (const TableSum::Source& source : sources()) {
    const SparseGradientView view = own.at(0)->sparse_gradient(source.gradient).view();
    const auto* const places = static_cast<const int64_t*>(view.ids.data);
    const auto* const values = static_cast<const std::byte*>(view.values.data);
    const int64_t count = view.ids.shape[0];
    RowTerms gradient;
    for (int64_t i = 0; i < count; ++i) gradient.ids.push_back(source.rows->ids[static_cast<size_t>(places[i])]);
    const auto bytes = static_cast<size_t>(count * source.table->width) * sizeof(float);
    std::copy_n(values, bytes, gradient.allocate(bytes));
    source_.take(static_cast<size_t>(source.table - model().tables.data()), std::move(gradient));
  }
}

}  // namespace tenon::host
