// The processes of one training on all machines, as the launcher sees them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/link.h"
#include "launch/nodes.h"
#include "launch/output.h"
#include "launch/pod/meeting_place.h"
#include "launch/watch.h"

namespace tenon::launch {

// What the agent of a machine has answered to "prepare".
struct Answer {
  json prepared;        // null if it has refused
  int exit = 0;         // of a refusal
  std::string message;  // likewise
};

// A process that was started.
struct Process {
  size_t node = 0;          // its index
  bool running = false;     // nothing says yet that it has ended
  std::optional<int> done;  // the exit code that it has announced, and when
  Clock::time_point done_at;
  std::optional<json> end;  // how it has ended; empty if that is unknown, since its node is lost
};

class Team : base::NotCopied {
 public:
  // meeting: where agents come by themselves, but for that of a node which is here; null: this object starts them.
  Team(std::vector<Node> nodes, const Signals& signals, Output& output, WatchOptions watch, MeetingPlace* meeting);
  ~Team();

  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<Process>& processes() const { return processes_; }
  [[nodiscard]] const Watch& watch() const { return watch_; }
  [[nodiscard]] Watch& watch() { return watch_; }
  [[nodiscard]] Link& link(size_t node) const { return *links_[node]; }
  // "process 2 on node1"
  [[nodiscard]] std::string name(size_t process) const;

  // Starts the agents of the nodes that have none.
  void connect();
  // Starts the agent of a node anew, whose connection has ended, or awaits one that comes; it has answered nothing.
  void reconnect(size_t node);
  // Whether an agent has said something of itself.
  [[nodiscard]] bool has_answer() const;
  // Removes a node, whose agent has ended or does not answer; processes are numbered anew.
  void remove(size_t node);
  // Sends {"prepare": plan(node)} to each agent; answers() has what they answer.
  void prepare(const std::function<json(size_t)>& plan);
  // Likewise for one node, whose answer is forgotten.
  void prepare(size_t node, const json& plan);
  [[nodiscard]] const std::vector<std::optional<Answer>>& answers() const { return answers_; }
  // Sends {"start": plan(node)} to each agent.
  void start(const std::function<json(size_t)>& plan);
  // Sends {"start": plan} to the agent of one process, which has ended.
  void start_again(size_t process, const json& plan);
  // Sends a line to all agents.
  void tell_all(const json& line);
  // Ends a process, which is not watched any more.
  void kill(size_t process);
  // Waits for something to happen, at most a tenth of a second, and handles it. interrupted: called for each signal.
  void turn(const std::function<void(int signal)>& interrupted);
  [[nodiscard]] bool all_ended() const;
  // Ends all agents, which have no processes any more.
  void finish();

 private:
  void handle(size_t node, const json& line);
  void handle_process(size_t node, const json& line);
  void control(size_t process, const json& line);
  // Takes the processes of agents that have ended for ended.
  void drop_lost();

  std::vector<Node> nodes_;
  const Signals& signals_;
  Output& output_;
  MeetingPlace* const meeting_;
  const WatchOptions watch_options_;
  std::vector<std::unique_ptr<Link>> links_;  // of each node
  std::vector<std::optional<Answer>> answers_;
  std::vector<Process> processes_;
  Watch watch_;
  bool paused_ = false;
  Clock::time_point turned_ = Clock::now();
};

}  // namespace tenon::launch
