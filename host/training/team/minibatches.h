// The minibatches of a run over a reader. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "host/training/team/agreement.h"
#include "host/training/training_loop.h"

namespace tenon::host {

using namespace core;

// Where a run begins and ends. By default it begins with the first sample of the pass if the reader can seek; otherwise
// it continues in the middle of the pass or, if nothing is left of it, with the next pass.
struct MinibatchOrder {
  bool stays = false;        // it continues where the reader is
  bool endless = false;      // the passes of the reader follow one another without an end
  bool whole_first = false;  // this process has all samples of the first minibatch of a pass of the reader
};

// Reads the minibatches of a run. The processes of a team have the samples of their shards each, or more of them, and
// agree on each minibatch, on the end of a pass, and on the error of a reader.
class Minibatches {
 public:
  // Borrows the arguments; the feeder is that of the run.
  Minibatches(const LoopInputs& inputs, Feeder& feeder, MinibatchOrder order = {});

  // Reads the next minibatch and returns its number of samples, 0 at the end of a pass; if endless, only if a whole
  // pass has none.
  int64_t next();
  // Compute the last minibatch: of a training, and of a test or inference, which reads the set of the gate.
  void forward_backward();
  void forward(SetGate& gate);

 private:
  PartRead read();
  [[nodiscard]] const WholeMinibatch* minibatch() const { return minibatch_ ? &*minibatch_ : nullptr; }
  void agree(const MinibatchReport& own, int64_t first);

  const LoopInputs& inputs_;
  Feeder& feeder_;
  const MinibatchOrder order_;
  const Agreement agreement_;
  MinibatchPart part_;                       // of this process
  std::optional<WholeMinibatch> minibatch_;  // of which this process has read a part; empty: it trains alone
  bool amid_ = false;                        // the run begins in the middle of a pass and has read nothing yet
};

}  // namespace tenon::host
