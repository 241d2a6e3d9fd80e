// A training of the bounded mode, as process 0 and the servers see it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "host/training/bounded/bounded_server.h"
#include "host/training/bounded/bounded_trainer.h"
#include "host/training/updater_groups.h"

namespace tenon::host {

using namespace core;

// Trains in rounds of minibatches that trainers compute at the same time. Between two of them these processes have
// equal parameters, apart from the rows of tables, and the minibatches so far are the first ones of the pass. Functions
// are collective in the team of process 0 and the servers.
class BoundedRounds : base::NotCopied {
 public:
  // Borrows everything. observer: of the minibatches of process 0.
  BoundedRounds(const LoopInputs& inputs, const UpdaterGroups& updater, Feeder& feeder,
                BoundedTrainer::Observer& observer);

  // Trains from minibatch `first` of the pass on, where the reader stands, at most until minibatch `end`, and moves the
  // reader behind the last one. Throws the error of any trainer in all of these processes.
  const BoundedServer::Round& run(int64_t first, int64_t end);
  // Cost and metrics of the last round.
  [[nodiscard]] const ResultSums& results() const { return results_; }
  // Gives process 0 the states of the updaters, for a checkpoint.
  void share_states();
  // Gives all the states of the updaters, and ends the training of the other trainers. error: why it has failed; null:
  // it has not. Removes lost processes from the team of all.
  void end(const Error* error);
  [[nodiscard]] bool has_ended() const { return has_ended_; }

 private:
  void take_part(const BoundedServer::Bounds& bounds);
  void share(const BoundedServer::Bounds& bounds);

  const LoopInputs& inputs_;
  const UpdaterGroups& updater_;
  Team& team_;
  StepValues values_;
  ResultSums results_;
  BoundedServer::Round round_;
  std::optional<Error> own_error_;
  bool has_ended_ = false;
  std::optional<BoundedTrainer> trainer_;
  std::optional<BoundedServer> server_;
};

// Before a training: throws TN_UNSUPPORTED for one that the bounded mode cannot make, and TN_INVALID naming a server
// whose job is another one than that of process 0. Collective in its team. averages: whether it has some.
void prepare_bounded(const LoopInputs& inputs, const UpdaterGroups& updater, bool averages);

// The whole training of a trainer that is not process 0. Removes lost processes from the team of all at the end.
void train_bounded(const LoopInputs& inputs, const UpdaterGroups& updater);

}  // namespace tenon::host
