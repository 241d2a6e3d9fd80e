// SPDX-License-Identifier: Apache-2.0
#include "host/training/team/minibatches.h"

#include <new>
#include <utility>

#include "core/error.h"
#include "host/comm/team.h"
#include "host/machine/shards/shard_tree.h"
#include "host/machine/tables/machine_tables.h"

namespace tenon::host {

namespace {

MinibatchPart part_of(const Machine& machine, bool whole_first) {
  const Team* const team = machine.team();
  if (team == nullptr) return {};
  const ShardRange own = shards_of_process(machine.shards(), team->trainers(), team->rank());
  return {machine.shards(), static_cast<size_t>(own.first), static_cast<size_t>(own.count), whole_first};
}

}  // namespace

Minibatches::Minibatches(const LoopInputs& inputs, Feeder& feeder, MinibatchOrder order)
    : inputs_(inputs),
      feeder_(feeder),
      order_(order),
      agreement_(inputs.machine.team()),
      part_(part_of(inputs.machine, order.whole_first)),
      place_(inputs.place == nullptr ? own_place_ : *inputs.place) {
  Reader& reader = inputs_.reader;
  if (order_.stays || reader.position() == 0) return;
  try {
    reader.seek(reader.pass(), 0);
  } catch (const Error& error) {
    if (error.code() != TN_UNSUPPORTED) throw;
    amid_ = true;
  }
}

Minibatches::~Minibatches() {
  if (!place_) return;
  const ReaderPlace place = *std::exchange(place_, std::nullopt);
  try {
    inputs_.reader.seek(place.pass, place.position);
  } catch (...) {  // it stands behind what was read ahead, and says so
  }
}

// Whether all processes gain by it, and can go back.
bool Minibatches::can_look_ahead() const {
  if (!order_.looks_ahead || agreement_.is_alone() || inputs_.machine.team_tables() == nullptr) return false;
  Reader& reader = inputs_.reader;
  bool can_seek = true;
  try {
    reader.seek(reader.pass(), reader.position());
  } catch (const Error&) {
    can_seek = false;
  }
  return agreement_.all(can_seek);
}

PartRead Minibatches::read_part(SampleBlock& to) {
  Reader& reader = inputs_.reader;
  if (agreement_.is_alone()) return {reader.next(to, reader.batch()), 0};
  return reader.next_part(to, reader.batch(), part_);
}

int64_t Minibatches::next() {
  if (place_) {
    place_.reset();
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
    std::swap(minibatch_, ahead_);
    std::swap(inputs_.minibatch, ahead_samples_);
  } else {
    if (!looks_ahead_) {
      looks_ahead_ = can_look_ahead();
      if (*looks_ahead_) ahead_samples_ = SampleBlock(inputs_.reader.slots(), inputs_.machine.set()->allocator());
    }
    read(inputs_.minibatch, minibatch_);
    ask_for_rows(minibatch_);
  }
  return minibatch_.part.samples;
}

void Minibatches::look_ahead() {
  if (!*looks_ahead_) return;
  place_ = place();
  try {
    read(ahead_samples_, ahead_);
  } catch (const Error&) {
    failure_ = std::current_exception();
    return;
  }
  ask_for_rows(ahead_);
}

void Minibatches::ask_for_rows(Minibatch& minibatch) {
  if (*looks_ahead_ && minibatch.part.samples > 0) inputs_.machine.team_tables()->ask(minibatch.ids);
}

void Minibatches::recall_rows() {
  if (looks_ahead_.value_or(false)) inputs_.machine.team_tables()->recall();
}

ReaderPlace Minibatches::place() const {
  return place_.value_or(ReaderPlace{inputs_.reader.pass(), inputs_.reader.position()});
}

void Minibatches::read(SampleBlock& to, Minibatch& minibatch) {
  to.clear();
  minibatch.part = {};
  minibatch.total.reset();
  const auto read_next = [&] {
    minibatch.part = read_part(to);
    if (minibatch.part.samples == 0 && (amid_ || order_.endless)) minibatch.part = read_part(to);
  };
  if (agreement_.is_alone()) {
    read_next();
  } else {
    MinibatchReport report;
    report.sizes.resize(inputs_.machine.sizes_count());
    try {
      read_next();
      const auto& [samples, first] = minibatch.part;
      report.samples = samples;
      report.count = to.samples();
      if (samples > 0) report.sizes = inputs_.machine.sizes_of(feeder_.arrays(to), first);
      if (samples > 0 && *looks_ahead_)
        inputs_.machine.team_tables()->collect({feeder_.arrays(to), first, samples}, minibatch.ids);
    } catch (const Error& error) {
      report.error = error;
    } catch (const std::bad_alloc&) {
      report.error = Error(TN_OUT_OF_MEMORY, "out of memory");
    }
    minibatch.total = agree(report, minibatch.part.first);
  }
  amid_ = false;
}

// Returns the minibatch on which the processes agree. first: the number in it of the first sample that this process
// has.
WholeMinibatch Minibatches::agree(const MinibatchReport& own, int64_t first) const {
  std::vector<MinibatchReport> reports = agreement_.reports_of_all(own);
  if (reports.front().count == reports.front().samples)  // process 0 has all samples
    return {first, std::move(reports.front().sizes)};
  std::vector<std::vector<int64_t>> sizes;
  for (MinibatchReport& report : reports) sizes.push_back(std::move(report.sizes));
  return {first, inputs_.machine.joined_sizes(sizes)};
}

void Minibatches::forward_backward() {
  inputs_.machine.forward_backward(feeder_.arrays(inputs_.minibatch), FeedMode::kLent, total());
}

void Minibatches::forward(SetGate& gate) {
  inputs_.machine.forward(gate, feeder_.arrays(inputs_.minibatch), FeedMode::kLent, total());
}

}  // namespace tenon::host
