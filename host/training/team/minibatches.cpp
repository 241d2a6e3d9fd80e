// SPDX-License-Identifier: Apache-2.0
#include "host/training/team/minibatches.h"

#include <new>

#include "core/error.h"
#include "host/comm/team.h"
#include "host/machine/shards/shard_tree.h"

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
      part_(part_of(inputs.machine, order.whole_first)) {
  Reader& reader = inputs_.reader;
  if (order_.stays || reader.position() == 0) return;
  try {
    reader.seek(reader.pass(), 0);
  } catch (const Error& error) {
    if (error.code() != TN_UNSUPPORTED) throw;
    amid_ = true;
  }
}

PartRead Minibatches::read() {
  Reader& reader = inputs_.reader;
  if (agreement_.is_alone()) return {reader.next(inputs_.minibatch, reader.batch()), 0};
  return reader.next_part(inputs_.minibatch, reader.batch(), part_);
}

int64_t Minibatches::next() {
  inputs_.minibatch.clear();
  minibatch_.reset();
  MinibatchReport report;
  PartRead minibatch;
  const auto read_next = [&] {
    minibatch = read();
    if (minibatch.samples == 0 && (amid_ || order_.endless)) minibatch = read();
  };
  if (agreement_.is_alone()) {
    read_next();
  } else {
    report.sizes.resize(inputs_.machine.sizes_count());
    try {
      read_next();
      report.samples = minibatch.samples;
      report.count = inputs_.minibatch.samples();
      if (minibatch.samples > 0)
        report.sizes = inputs_.machine.sizes_of(feeder_.arrays(inputs_.minibatch), minibatch.first);
    } catch (const Error& error) {
      report.error = error;
    } catch (const std::bad_alloc&) {
      report.error = Error(TN_OUT_OF_MEMORY, "out of memory");
    }
    agree(report, minibatch.first);
  }
  amid_ = false;
  return minibatch.samples;
}

// first: the number in the minibatch of the first sample that this process has.
void Minibatches::agree(const MinibatchReport& own, int64_t first) {
  std::vector<MinibatchReport> reports = agreement_.reports_of_all(own);
  if (reports.front().count < reports.front().samples) {
    std::vector<std::vector<int64_t>> sizes;
    for (MinibatchReport& report : reports) sizes.push_back(std::move(report.sizes));
    minibatch_ = WholeMinibatch{first, inputs_.machine.joined_sizes(sizes)};
  } else {  // process 0 has all samples
    minibatch_ = WholeMinibatch{first, std::move(reports.front().sizes)};
  }
}

void Minibatches::forward_backward() {
  inputs_.machine.forward_backward(feeder_.arrays(inputs_.minibatch), FeedMode::kLent, minibatch());
}

void Minibatches::forward(SetGate& gate) {
  inputs_.machine.forward(gate, feeder_.arrays(inputs_.minibatch), FeedMode::kLent, minibatch());
}

}  // namespace tenon::host
