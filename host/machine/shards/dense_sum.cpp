// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/dense_sum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/alignment.h"
#include "core/floating_point_mode.h"

namespace tenon::host {

namespace {

constexpr uint64_t kAddedAtOnce = uint64_t{64} << 10U;  // bytes of a task
constexpr uint64_t kMostChunks = 512;                   // each has a channel

template <typename Number>
void add_each(std::byte* to, const std::byte* from, uint64_t bytes) {
  auto* const sums = reinterpret_cast<Number*>(to);
  const auto* const terms = reinterpret_cast<const Number*>(from);
  for (uint64_t i = 0; i < bytes / sizeof(Number); ++i) sums[i] += terms[i];
}

struct Addition {
  tn_dtype compute;
  std::byte* to;
  const std::byte* from;
  uint64_t bytes;

  void run(int64_t task) const {
    const uint64_t at = static_cast<uint64_t>(task) * kAddedAtOnce, size = std::min(kAddedAtOnce, bytes - at);
    if (compute == TN_F64)
      add_each<double>(to + at, from + at, size);
    else
      add_each<float>(to + at, from + at, size);
  }
};

}  // namespace

void add_numbers(tn_dtype compute, const tn_parallel* parallel, std::byte* to, const std::byte* from, uint64_t bytes) {
  Addition addition{compute, to, from, bytes};
  const auto tasks = static_cast<int64_t>((bytes + kAddedAtOnce - 1) / kAddedAtOnce);
  if (parallel == nullptr || tasks < 2) {
    for (int64_t task = 0; task < tasks; ++task) addition.run(task);
    return;
  }
  parallel->for_each(
      parallel->self, tasks,
      [](void* argument, int64_t task, int32_t /*worker*/) { static_cast<Addition*>(argument)->run(task); }, &addition);
}

DenseSum::DenseSum(Team& team, tn_dtype compute, const tn_parallel* parallel, const std::vector<uint64_t>& ends,
                   const ChunkSizes& sizes)
    : team_(team), compute_(compute), parallel_(parallel), sizes_(sizes) {
  cut(ends);
}

// Cuts the values into chunks: small ones share that of the value before, mostly one of the same layer, which is final
// at about the same time. The cuts depend on the values alone.
void DenseSum::cut(const std::vector<uint64_t>& ends) {
  const uint64_t all = ends.empty() ? 0 : ends.back();
  const uint64_t least = std::max(sizes_.least, all / kMostChunks), most = std::max(2 * least, sizes_.most);
  std::vector<uint64_t> cuts = {0};
  uint64_t begin = 0;
  for (const uint64_t end : ends) {
    if (end - begin >= least && begin - cuts.back() >= least) cuts.push_back(begin);
    begin = end;
  }
  cuts.push_back(all);
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const uint64_t bytes = cuts[i + 1] - cuts[i], pieces = (bytes + most - 1) / most;
    for (uint64_t at = cuts[i]; at < cuts[i + 1]; at += chunks_.back().bytes) {
      Chunk& chunk = chunks_.emplace_back();
      chunk.offset = at;
      chunk.bytes = std::min(whole_lines((bytes + pieces - 1) / pieces), cuts[i + 1] - at);
    }
  }
}

void DenseSum::begin(const ShardTree& tree, const std::vector<TeamNode>& nodes, std::vector<Term> terms,
                     std::byte* sum) {
  if (nodes != nodes_) {
    tree_ = tree;
    nodes_ = nodes;
    assign_owners();
  }
  terms_ = std::move(terms);
  sum_ = sum;
  for (Chunk& chunk : chunks_) {
    chunk.stage = Stage::kComputed;
    chunk.missing = terms_.empty() ? 0 : chunk.bytes;
    if (is_added_here(chunk)) receive_terms(chunk);
  }
  static_cast<void>(advance_all());
}

// Gives each chunk to the process that has the fewest bytes so far.
void DenseSum::assign_owners() {
  const uint64_t bytes = chunks_.empty() ? 0 : chunks_.back().offset + chunks_.back().bytes;
  const bool is_shared = bytes * (nodes_.size() - 1) <= sizes_.shared;
  std::vector<uint64_t> owned(static_cast<size_t>(team_.processes()), 0);
  for (Chunk& chunk : chunks_) {
    chunk.owner = kAll;
    if (is_shared) continue;
    const auto least = std::min_element(owned.begin(), owned.end());
    chunk.owner = least - owned.begin();
    *least += chunk.bytes;
  }
}

void DenseSum::receive_terms(Chunk& chunk) {
  std::vector<Team::Incoming> incoming;
  for (const TeamNode& node : nodes_)
    if (node.process != team_.rank()) incoming.push_back({node.process, nullptr, chunk.bytes});
  chunk.room.resize(incoming.size() * chunk.bytes);
  for (size_t i = 0; i < incoming.size(); ++i) incoming[i].data = chunk.room.data() + i * chunk.bytes;
  chunk.in = team_.begin({}, incoming, channel(chunk));
}

void DenseSum::add_final(uint64_t offset, uint64_t bytes) {
  for (Chunk& chunk : chunks_) {
    const uint64_t first = std::max(offset, chunk.offset), end = std::min(offset + bytes, chunk.offset + chunk.bytes);
    if (first < end) chunk.missing -= end - first;
  }
  static_cast<void>(advance_all());
}

void DenseSum::finish() {
  for (Chunk& chunk : chunks_) chunk.missing = 0;
  while (true) {
    const bool has_moved = advance_all();
    const auto first =
        std::find_if(chunks_.begin(), chunks_.end(), [](const Chunk& chunk) { return chunk.stage != Stage::kDone; });
    if (first == chunks_.end()) return;
    if (has_moved) continue;
    first->out.wait();
    first->in.wait();
  }
}

void DenseSum::end() noexcept {
  for (Chunk& chunk : chunks_) {
    chunk.in = {};
    chunk.out = {};
    chunk.stage = Stage::kDone;
  }
}

bool DenseSum::advance_all() {
  const FloatingPointMode mode;
  bool has_moved = false;
  for (Chunk& chunk : chunks_) has_moved = advance(chunk) || has_moved;
  return has_moved;
}

// Takes a chunk to its next stage if nothing is to be waited for.
bool DenseSum::advance(Chunk& chunk) {
  if (chunk.stage == Stage::kDone) return false;
  if (chunk.stage == Stage::kComputed ? chunk.missing > 0 : !chunk.in.are_done() || !chunk.out.are_done()) return false;
  if (chunk.stage == Stage::kComputed)
    send_terms(chunk);
  else if (chunk.stage == Stage::kTerms)
    share_sum(chunk);
  else
    chunk.stage = Stage::kDone;
  return true;
}

// Adds up what this process can add alone, and sends it to those that add up the rest.
void DenseSum::send_terms(Chunk& chunk) {
  chunk.stage = Stage::kTerms;
  if (terms_.empty()) return;
  std::vector<Place> nodes;
  for (const Term& term : terms_) nodes.push_back({term.first, term.values + chunk.offset});
  join(nodes, {terms_.front().first, terms_.back().end}, chunk.bytes, nullptr);
  std::vector<Team::Outgoing> outgoing;
  for (int64_t other = 0; other < team_.processes(); ++other) {
    if (other == team_.rank() || (chunk.owner != kAll && chunk.owner != other)) continue;
    for (const Place& node : nodes) outgoing.push_back({other, node.values, chunk.bytes});
  }
  chunk.out = team_.begin(outgoing, {}, channel(chunk));
}

// The terms have arrived, and nobody needs those of this process any more.
void DenseSum::share_sum(Chunk& chunk) {
  std::byte* const sum = sum_ + chunk.offset;
  chunk.stage = chunk.owner == kAll ? Stage::kDone : Stage::kSums;
  if (!is_added_here(chunk)) {
    const Team::Incoming incoming{chunk.owner, sum, chunk.bytes};
    chunk.in = team_.begin({}, {&incoming, 1}, channel(chunk));
    return;
  }
  add_up(chunk);
  if (chunk.owner == kAll) return;
  std::vector<Team::Outgoing> outgoing;
  for (int64_t other = 0; other < team_.processes(); ++other)
    if (other != team_.rank()) outgoing.push_back({other, sum, chunk.bytes});
  chunk.out = team_.begin(outgoing, {}, channel(chunk));
}

void DenseSum::add_up(Chunk& chunk) {
  std::byte* const sum = sum_ + chunk.offset;
  std::vector<Place> nodes;
  std::byte* received = chunk.room.data();
  for (const TeamNode& node : nodes_)
    if (node.process == team_.rank()) {
      const auto own = std::find_if(terms_.begin(), terms_.end(), [&](const Term& t) { return t.first == node.first; });
      nodes.push_back({node.first, own->values + chunk.offset});
    } else {
      nodes.push_back({node.first, std::exchange(received, received + chunk.bytes)});
    }
  join(nodes, {0, tree_.count()}, chunk.bytes, sum);
  if (nodes.front().values != sum) std::memcpy(sum, nodes.front().values, chunk.bytes);
}

// Makes the nodes of the tree that have no other shards than these. target: memory of a node that gets the sums it is
// part of; null: that of the first.
void DenseSum::join(std::vector<Place>& nodes, ShardSpan shards, uint64_t bytes, const std::byte* target) const {
  const auto node = [&](size_t first) {
    return std::find_if(nodes.begin(), nodes.end(), [=](const Place& each) { return each.first == first; });
  };
  for (const std::vector<ShardJoin>& level : tree_.levels())
    for (const ShardJoin& step : level) {
      const auto from = node(step.from);
      if (step.to < shards.first || step.end > shards.end || from == nodes.end()) continue;
      const auto to = node(step.to);
      if (from->values == target) std::swap(from->values, to->values);
      add_numbers(compute_, parallel_, to->values, from->values, bytes);
      nodes.erase(from);
    }
}

}  // namespace tenon::host
