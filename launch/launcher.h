// Starts the processes of a training, and again from the last checkpoint when one of them is lost.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "host/cli/verbs/train_arguments.h"
#include "launch/job.h"
#include "launch/team.h"

namespace tenon::launch {

// Why the processes of an epoch are ended.
struct Cause {
  int exit;            // of the launcher, if it does not start them again
  std::string text;    // "process 1 on node1 was ended by signal 9 (Killed) at step 12"
  bool permanent;      // starting again would end the same way
  int64_t step = -1;   // at which a process is stuck
  size_t process = 0;  // that is silent or stuck
};

class Launcher : base::NotCopied {
 public:
  // meeting: where the agents of --nodes come by themselves, but for the first one, which is this machine; null: they
  // are started.
  explicit Launcher(const cli::TrainCommand& command, MeetingPlace* meeting = nullptr);

  // Returns the exit code of the training. Throws Failure if it could not be started.
  int run();

 private:
  // Connects with the agents of all nodes. Throws Failure naming the node at fault; when the training starts again,
  // nodes that do not answer are left out instead, as long as one is left.
  void connect();
  // Returns why the agent of a node cannot be used; empty if it can, or may answer yet. waited: for it.
  [[nodiscard]] std::optional<cli::Failure> fault_of(size_t node, std::chrono::seconds waited);
  // Has all nodes ready for the next epoch, and starts the processes.
  void start();
  void prepare();
  // newest: the newest checkpoint. A training that starts again resumes from it, or from that of --resume-from if there
  // is no newer one.
  void choose_resume(const json& newest);
  // Of the processes that are left, one of which at least has to train.
  [[nodiscard]] int64_t servers() const;
  [[nodiscard]] json plan_of(size_t node) const;
  [[nodiscard]] json start_of(size_t node) const;
  // Returns why the processes must be ended; empty after the end of the training.
  [[nodiscard]] std::optional<Cause> supervise();
  [[nodiscard]] std::optional<Cause> find_cause();
  // Whether the training goes on without the process: a trainer of the bounded mode. A team needs all to come about.
  [[nodiscard]] bool may_be_lost(size_t process) const;
  // Goes on without a process, and starts it again when it has ended.
  void lose(size_t process, const std::string& text, bool may_return);
  void start_again(size_t process);
  // Whether the node of a process can start it: with the agent that it has, or with that of another pod in its place.
  [[nodiscard]] bool is_ready_again(size_t process);
  [[nodiscard]] std::optional<Cause> end_of(size_t process) const;
  [[nodiscard]] std::optional<Cause> fault_now() const;
  // Returns what a message says of the processes that wait for one that is stuck.
  [[nodiscard]] std::string waits_text(size_t process) const;
  // The exit code of a training whose processes have all ended by themselves.
  [[nodiscard]] int exit_of_training() const;
  // Ends all processes.
  void halt(const std::string& reason);
  // Returns why the training cannot be started again; empty if it can.
  [[nodiscard]] std::string obstacle(const Cause& cause) const;
  void check_unchanged() const;
  void turn();
  void interrupt(int signal);

  const cli::TrainCommand& command_;
  const bool awaits_agents_;
  const LaunchedJob job_;
  Output output_;
  const Signals signals_;
  const json holder_;
  Team team_;
  uint32_t epoch_ = 0;  // 0: none has begun
  int64_t restarts_ = 0;
  int64_t shards_ = 0;  // of a minibatch
  std::string address_;
  std::optional<json> first_checkpoint_;  // the newest one before the first epoch
  std::optional<std::string> resume_from_;
  int signal_ = 0;           // that has asked the training to end
  bool running_ = false;     // processes are there
  bool halts_ = false;       // and are being ended
  bool has_joined_ = false;  // all of this epoch have joined the team
  std::optional<Cause> weak_;
  Clock::time_point weak_until_;
  int64_t stuck_at_ = -1;
  std::set<size_t> lost_;  // processes of this epoch without which the training goes on
  struct Return {
    Clock::time_point since;
    bool has_come = false;  // another agent, which was asked to prepare
  };
  std::map<size_t, Return> returning_;  // of these, the ones that are to start again
  std::set<size_t> newcomers_;          // that have done so
  std::map<size_t, int64_t> restarts_of_;
  std::string secret_;  // of this epoch
};

}  // namespace tenon::launch
