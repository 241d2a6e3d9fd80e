// The minibatches of a run over a reader. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <optional>
#include <vector>

#include "base/not_copied.h"
#include "host/machine/tables/minibatch_rows.h"
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
  // Where the owners of tables can use it and the reader can seek, each minibatch is read before the one before it is
  // computed.
  bool looks_ahead = false;
};

// Reads the minibatches of a run. The processes of a team have the samples of their shards each, or more of them, and
// agree on each minibatch, on the end of a pass, and on the error of a reader. A minibatch that is read ahead shows in
// nothing until next() returns it: not in place(), nor in errors, and in the end the reader stands before it.
class Minibatches : base::NotCopied {
 public:
  // Borrows the arguments; the feeder is that of the run.
  Minibatches(const LoopInputs& inputs, Feeder& feeder, MinibatchOrder order = {});
  ~Minibatches();

  // Reads the next minibatch and returns its number of samples, 0 at the end of a pass; if endless, only if a whole
  // pass has none.
  int64_t next();
  // If it looks ahead: reads the minibatch behind the last one, and asks for its rows of tables.
  void look_ahead();
  // Lets the next minibatch get all its rows of tables when it is computed, since parameters have been written.
  void recall_rows();
  // Where the reader stands behind the last minibatch.
  [[nodiscard]] ReaderPlace place() const;
  // Compute the last minibatch: of a training, and of a test or inference, which reads the set of the gate.
  void forward_backward();
  void forward(SetGate& gate);

 private:
  // A minibatch, of which this process has read a part.
  struct Minibatch {
    PartRead part;
    std::optional<WholeMinibatch> total;  // empty: this process trains alone
    TableIds ids;                         // rows of tables that it reads, if it looks ahead
  };
  [[nodiscard]] bool can_look_ahead() const;
  void read(SampleBlock& to, Minibatch& minibatch);
  [[nodiscard]] PartRead read_part(SampleBlock& to);
  [[nodiscard]] WholeMinibatch agree(const MinibatchReport& own, int64_t first) const;
  void ask_for_rows(Minibatch& minibatch);
  [[nodiscard]] const WholeMinibatch* total() const { return minibatch_.total ? &*minibatch_.total : nullptr; }

  const LoopInputs& inputs_;
  Feeder& feeder_;
  const MinibatchOrder order_;
  const Agreement agreement_;
  MinibatchPart part_;               // of this process
  Minibatch minibatch_;              // the last one
  bool amid_ = false;                // the run begins in the middle of a pass and has read nothing yet
  std::optional<bool> looks_ahead_;  // empty: nothing is read yet
  // What was read ahead: its samples, and the failure of reading it, or null.
  Minibatch ahead_;
  SampleBlock ahead_samples_;
  std::exception_ptr failure_;
  std::optional<ReaderPlace> own_place_;
  std::optional<ReaderPlace>& place_;  // behind the last minibatch, while one is read ahead; else empty
};

}  // namespace tenon::host
