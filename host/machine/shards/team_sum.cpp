// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/team_sum.h"

#include <tenon/op_value.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/floating_point_mode.h"

namespace tenon::host {

namespace {

// Calls work with a number of the type in which a machine computes.
template <typename Work>
void in_type(tn_dtype compute, const Work& work) {
  if (compute == TN_F64)
    work(double{});
  else
    work(float{});
}

// Returns where the dense gradients end, one behind the other.
std::vector<uint64_t> ends_of(const CompiledModel& model) {
  std::vector<uint64_t> ends;
  for (const PlacedGradient& gradient : model.gradients) ends.push_back(gradient.offset + gradient.bytes);
  return ends;
}

}  // namespace

TeamSum::TeamSum(Team& team, DeviceMachine& machine, size_t shards)
    : team_(team),
      machine_(machine),
      shards_(shards),
      dense_(team, machine.options().compute, machine.parallel(), ends_of(machine.model())) {
  for (const MergedBuffer& buffer : machine.merged_buffers()) buffer_bytes_ += buffer.bytes;
  const auto& gradients = machine_.model().sparse_gradients;
  for (size_t i = 0; i < gradients.size(); ++i)
    if (!machine_.set()->entries()[gradients[i]->entry()].table) row_sparse_.push_back(i);
}

void TeamSum::begin(const ShardTree& tree, const std::vector<SummedNode>& own) {
  if (tree.count() != with_samples_) list_nodes(tree);
  std::vector<DenseSum::Term> terms;
  for (const SummedNode& node : own) terms.push_back({{node.first, node.end}, dense_of(*node.values)});
  std::byte* sum = machine_.dense_gradients().data();
  if (!overlaps()) {
    staged_[&machine_].resize(machine_.dense_gradients().size());
    sum = staged_[&machine_].data();
  }
  has_begun_ = true;
  dense_.begin(tree, nodes_, std::move(terms), sum);
}

void TeamSum::run(const ShardTree& tree, const std::map<size_t, ShardValues*>& own) {
  const FloatingPointMode mode;
  if (!has_begun_) {
    std::vector<SummedNode> nodes;
    if (tree.count() != with_samples_) list_nodes(tree);
    for (const TeamNode& node : nodes_)
      if (is_own(node)) nodes.push_back({{node.first, node.end}, own.at(node.first)});
    begin(tree, nodes);
  }
  read_own(own);
  Team::Transfers terms = begin_terms();
  dense_.finish();
  has_begun_ = false;
  terms.wait();
  exchange_rows();
  join(tree);
  write_sums();
}

void TeamSum::end() noexcept {
  dense_.end();
  has_begun_ = false;
}

void TeamSum::list_nodes(const ShardTree& tree) {
  with_samples_ = tree.count();
  nodes_ = nodes_of_team(tree, shards_, team_.trainers());
  terms_.clear();
}

// Returns dense gradients where the host can change them.
std::byte* TeamSum::dense_of(ShardValues& values) {
  const std::span<std::byte> dense = values.dense_gradients();
  HostAccess& access = values.machine().access();
  if (access.is_direct()) return dense.data();
  std::vector<std::byte>& copy = staged_[&values];
  copy.resize(dense.size());
  access.read(copy.data(), dense.data(), dense.size());
  return copy.data();
}

void TeamSum::read_own(const std::map<size_t, ShardValues*>& own) {
  for (const TeamNode& node : nodes_) {
    if (!is_own(node)) continue;
    ShardValues& values = *own.at(node.first);
    HostAccess& access = values.machine().access();
    Terms& terms = terms_[node.first];
    terms.counts.clear();
    terms.rows.resize(row_sparse_.size());
    terms.buffers.resize(buffer_bytes_);
    std::byte* buffer_at = terms.buffers.data();
    for (const MergedBuffer& buffer : machine_.merged_buffers()) {
      access.read(buffer_at, values.next_value(buffer.number), buffer.bytes);
      buffer_at += buffer.bytes;
    }
    for (size_t i = 0; i < row_sparse_.size(); ++i) {
      const SparseGradient& gradient = values.sparse_gradient(row_sparse_[i]);
      const SparseGradientView view = gradient.view();
      const auto* const ids = static_cast<const int64_t*>(view.ids.data);
      const auto* const rows = static_cast<const std::byte*>(view.values.data);
      const auto count = static_cast<size_t>(view.ids.shape[0]);
      terms.counts.push_back(view.ids.shape[0]);
      RowTerms& copy = terms.rows[i];
      copy.ids.assign(ids, ids + count);
      std::copy_n(rows, count * gradient.row_bytes(), copy.allocate(count * gradient.row_bytes()));
    }
  }
}

// Begins to send to all what all add up: next values, and how many rows follow.
Team::Transfers TeamSum::begin_terms() {
  std::vector<Team::Outgoing> outgoing;
  std::vector<Team::Incoming> incoming;
  for (const TeamNode& node : nodes_) {
    Terms& terms = terms_[node.first];
    if (is_own(node)) {
      for (int64_t other = 0; other < team_.processes(); ++other) {
        if (other == team_.rank()) continue;
        outgoing.push_back({other, terms.buffers.data(), terms.buffers.size()});
        outgoing.push_back({other, terms.counts.data(), terms.counts.size() * sizeof(int64_t)});
      }
    } else {
      terms.buffers.resize(buffer_bytes_);
      terms.counts.resize(row_sparse_.size());
      terms.rows.resize(row_sparse_.size());
      incoming.push_back({node.process, terms.buffers.data(), terms.buffers.size()});
      incoming.push_back({node.process, terms.counts.data(), terms.counts.size() * sizeof(int64_t)});
    }
  }
  return team_.begin(outgoing, incoming, 0);
}

void TeamSum::exchange_rows() {
  if (row_sparse_.empty()) return;
  std::vector<Team::Outgoing> outgoing;
  std::vector<Team::Incoming> incoming;
  for (const TeamNode& node : nodes_)
    for (size_t i = 0; i < row_sparse_.size(); ++i) {
      const SparseGradient& gradient = *machine_.model().sparse_gradients[row_sparse_[i]];
      Terms& terms = terms_[node.first];
      RowTerms& rows = terms.rows[i];
      if (!is_own(node)) {
        if (terms.counts[i] < 0 || terms.counts[i] > gradient.height())
          fail(TN_BAD_DATA, "process ", node.process, " has a gradient of ", terms.counts[i],
               " rows; expected at most ", gradient.height());
        rows.ids.resize(static_cast<size_t>(terms.counts[i]));
        incoming.push_back({node.process, rows.ids.data(), rows.ids.size() * sizeof(int64_t)});
        const uint64_t bytes = rows.ids.size() * gradient.row_bytes();
        incoming.push_back({node.process, rows.allocate(bytes), bytes});
      }
      for (int64_t other = 0; is_own(node) && other < team_.processes(); ++other) {
        if (other == team_.rank()) continue;
        outgoing.push_back({other, rows.ids.data(), rows.ids.size() * sizeof(int64_t)});
        outgoing.push_back({other, rows.values.data(), rows.values.size()});
      }
    }
  team_.exchange(outgoing, incoming);
}

void TeamSum::join(const ShardTree& tree) {
  const tn_dtype compute = machine_.options().compute;
  for (const std::vector<ShardJoin>& level : tree.levels())
    for (const ShardJoin& step : level) {
      if (!terms_.contains(step.from)) continue;  // one process has added up both
      Terms &to = terms_[step.to], &from = terms_[step.from];
      join_buffers(to, from, tree.share(step));
      for (size_t i = 0; i < to.rows.size(); ++i)
        add_rows(compute, to.rows[i], from.rows[i], machine_.model().sparse_gradients[row_sparse_[i]]->row_bytes());
    }
}

// As the programs of ShardSum. share: the samples of `from` among those of both.
void TeamSum::join_buffers(Terms& to, const Terms& from, double share) const {
  uint64_t at = 0;  // bytes into the buffers
  for (const MergedBuffer& buffer : machine_.merged_buffers()) {
    in_type(machine_.options().compute, [&](auto zero) {
      using Number = decltype(zero);
      auto* const merged = reinterpret_cast<Number*>(to.buffers.data() + at);
      const auto* const other = reinterpret_cast<const Number*>(from.buffers.data() + at);
      const auto weight = static_cast<Number>(share);
      for (uint64_t i = 0; i < buffer.count; ++i) {
        if (buffer.merge == TN_MERGE_MEAN) {
          merged[i] = std::fma(weight, other[i] - merged[i], merged[i]);  // as a device rounds MUL and ADD
        } else if (buffer.merge == TN_MERGE_SUM) {
          merged[i] += other[i];
        } else if (buffer.merge == TN_MERGE_MAX) {
          merged[i] = static_cast<Number>(
              tn_op_value(TN_OP_MAX, TN_FLOAT, static_cast<double>(merged[i]), static_cast<double>(other[i]), 0));
        }
      }
    });
    at += buffer.bytes;
  }
}

void TeamSum::write_sums() {
  HostAccess& access = machine_.access();
  const std::span<std::byte> dense = machine_.dense_gradients();
  if (!access.is_direct()) access.write(dense.data(), staged_[&machine_].data(), dense.size());
  const Terms& sums = terms_.at(0);
  const std::byte* buffer_at = sums.buffers.data();
  for (const MergedBuffer& buffer : machine_.merged_buffers()) {
    access.write(machine_.next_value(buffer.number), buffer_at, buffer.bytes);
    buffer_at += buffer.bytes;
  }
  for (size_t i = 0; i < sums.rows.size(); ++i)
    machine_.take_rows(row_sparse_[i], sums.rows[i].ids, sums.rows[i].values.data());
  access.wait();
}

}  // namespace tenon::host
