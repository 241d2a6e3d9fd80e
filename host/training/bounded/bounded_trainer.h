// A process that computes minibatches in the bounded mode. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/training/bounded/protocol.h"
#include "host/training/bounded/row_client.h"
#include "host/training/bounded/step_values.h"
#include "host/training/training_loop.h"

namespace tenon::host {

using namespace core;

// Asks the servers for minibatches and values, computes, and sends gradients, until the servers say that a round or the
// training is over. Process 0 has a handler of each of its minibatches.
class BoundedTrainer : base::NotCopied {
 public:
  // What process 0 does around its minibatches, and what it asks for.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void begin(const BoundedTask& task) = 0;  // before a minibatch
    virtual void end(const BoundedTask& task) = 0;    // after it, before its gradients are sent
    // Whether the round is to end soon.
    [[nodiscard]] virtual bool drains() = 0;
    [[nodiscard]] virtual double learning_rate() const = 0;
  };

  // Borrows everything. The machine has the rows as its source. observer: null in other processes than the first.
  BoundedTrainer(const LoopInputs& inputs, const UpdaterGroups& updater, Feeder& feeder, Observer* observer);

  // Before run(), of other processes than the first: throws TN_INVALID if the first server refuses this process, which
  // trains otherwise than the others.
  void greet();
  // Computes until process 0 has to come to its team, or the training has ended. Throws the error of a training that
  // has failed elsewhere, and an error of its own after it was reported to the servers.
  void run();
  // Tells the servers but the first, which knows, that no requests follow. Process 0 calls it, others do so by
  // themselves.
  void leave();
  // Of other trainers than process 0, after run(): the ranks of trainers that were lost.
  [[nodiscard]] const std::vector<int64_t>& lost() const { return lost_; }

 private:
  [[nodiscard]] BoundedTask ask(Message& body);
  [[nodiscard]] BoundedTask take_answer(Message& body);
  void take_values(const BoundedTask& task, const Message& body);
  void end_training();
  void await_end();
  [[nodiscard]] int64_t read(const BoundedTask& task);
  void compute(const BoundedTask& task);
  void push(const BoundedTask& task);
  void send(int64_t server, BoundedRequest request, const Message& body);
  void report(const BoundedTask& task, const Error& error);

  const LoopInputs& inputs_;
  const UpdaterGroups& updater_;
  RowClient& rows_;
  Feeder& feeder_;
  Observer* observer_;
  World& world_;
  StepValues values_;
  ResultSums results_;    // of a minibatch
  bool has_all_ = false;  // the values of parameters that are not trained, too
  std::vector<int64_t> lost_;
};

}  // namespace tenon::host
