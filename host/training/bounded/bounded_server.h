// A process that owns parameters in the bounded mode. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/comm/team.h"
#include "host/machine/tables/messages.h"
#include "host/training/bounded/leases.h"
#include "host/training/bounded/protocol.h"
#include "host/training/bounded/step_values.h"
#include "host/training/training_loop.h"

namespace tenon::host {

using namespace core;

// Gives values to trainers and applies their gradients, each once, in the order in which they arrive. The first server
// has the parameters that are no tables, hands out the minibatches, and ends the rounds; of the rows of tables each
// server has its own.
class BoundedServer : base::NotCopied {
 public:
  // Borrows everything. The machine is one of the team of process 0 and the servers.
  BoundedServer(const LoopInputs& inputs, const UpdaterGroups& updater, int64_t staleness);
  ~BoundedServer();

  // The minibatches of a round. position: of the first sample of minibatch `first` in the pass of the reader.
  struct Bounds {
    int64_t first, end;
    int64_t reader_pass, position;
  };
  // What a round has done, at the first server.
  struct Round {
    int64_t next = 0;  // all minibatches of the pass before it are done
    int64_t pass_has_ended = 0;
    int64_t repeated = 0;  // minibatches that were handed out again so far, since their trainers were lost
    int64_t torn = 0;      // of those, the ones of which some servers had applied the gradients already
    uint64_t updates = 0;  // of the set
  };
  // Serves a round to its end. Collective in the team of process 0 and the servers.
  void run(const Bounds& bounds);
  [[nodiscard]] const Round& round() const { return round_; }
  [[nodiscard]] const ResultSums& results() const { return results_; }  // of the round
  // Returns how many of the leases that lost trainers had were applied by some server. lost: of the first server;
  // applied: by this process in the round. Collective.
  [[nodiscard]] static int64_t count_torn(Team& team, std::vector<int64_t> lost, const std::set<int64_t>& applied);
  // Why the training has to end, at the first server: a trainer has failed.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  // Ends the training of all trainers but process 0, which get what the first server has then. error: why it failed;
  // null: it has not.
  void end(const Error* error);
  // Of the first server, after end(): the ranks of the trainers that were lost.
  [[nodiscard]] std::vector<int64_t> lost() const;

 private:
  struct Trainer {
    int64_t rank = 0;
    BoundedRequest request;
    World::Transfers incoming;  // of a request
    Message answer;
    BoundedTask task;
    World::Transfers outgoing;  // of an answer
    bool is_idle = true;        // it waits for a minibatch, or nothing is expected of it
    bool wants_all = false;
    bool lost = false;
    bool is_refused = false;           // it trains otherwise, and gets nothing
    uint64_t losses = 0, returns = 0;  // of the world, as far as they are noticed here
  };
  // Process 0 of the team is the first trainer.
  [[nodiscard]] bool is_first() const { return team_.rank() == 1; }
  [[nodiscard]] World::Transfers receive(const Trainer& trainer, void* to, uint64_t bytes);
  void expect(Trainer& trainer);
  void expect_control();
  void send_control();
  void serve_until(const std::function<bool()>& is_over);
  void serve(Trainer& trainer);
  [[nodiscard]] bool take(Trainer& trainer, Message& body);
  void answer_rows(Trainer& trainer, const Message& ids);
  void push(Trainer& trainer, const Message& body);
  void apply(Trainer& trainer, const Message& body);
  void end_by(Trainer& trainer, const Message& body);
  void greet(Trainer& trainer, const Message& body);
  // Whether the world knows of a loss, or a return, that is not noticed here.
  [[nodiscard]] bool has_changed(const Trainer& trainer) const;
  void notice_change(Trainer& trainer);
  void lose(Trainer& trainer);
  [[nodiscard]] static bool is_there(const Trainer& trainer) { return !trainer.lost && !trainer.is_refused; }
  void await_idle();
  [[nodiscard]] bool are_all_idle() const;
  void tell_all(int64_t kind, const Message& answer);
  void tell_present();
  void hand_out();
  void send(Trainer& trainer, int64_t kind);
  void send(Trainer& trainer, const void* bytes, uint64_t count);
  void settle();

  const LoopInputs& inputs_;
  const UpdaterGroups& updater_;
  Team& team_;
  World& world_;
  Machine& machine_;
  StepValues values_;
  ResultSums results_, step_results_;
  Leases leases_;
  std::list<std::shared_ptr<Trainer>> trainers_;  // shared with transfers that are not awaited any more
  std::set<int64_t> applied_;                     // serials of gradients, in the round
  std::vector<int64_t> lost_leases_;              // of the first server: serials, in the round
  std::vector<uint64_t> losses_;  // of other servers: of each trainer, as the first one says when a round is over;
                                  // in the end 1 for those that are lost, else 0
  World::Transfers control_;      // likewise
  bool is_ending_ = false, first_has_failed_ = false;
  std::optional<Error> failure_;
  Bounds bounds_ = {};
  Round round_;
  uint64_t first_update_ = 0;  // of the round
};

}  // namespace tenon::host
