// The processes of a training that exchange data by an MPI, whose launcher must start them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "launch/channel.h"
#include "launch/child.h"
#include "launch/events.h"
#include "process/child.h"

namespace tenon::launch {

// The launcher of the MPI, such as mpiexec.mpich, starts an agent in place of each process. It connects with the agent
// of the machine, says its rank, and then serves it as this one serves the launcher of Tenon: it has one process, which
// inherits what the MPI's launcher has given to the agent.
class World : base::NotCopied {
 public:
  // Whether a communicator is one of an MPI.
  [[nodiscard]] static bool connects(const std::string& comm);
  // Returns the command that starts so many processes of it, without their own: {"mpiexec.mpich", "-n", "4"}. hosts:
  // the machines, "node0:1,node1:2"; empty: this one.
  [[nodiscard]] static std::vector<std::string> launcher_of(const std::string& comm, int64_t processes,
                                                            const std::string& hosts = {});
  // Returns the connection of an agent that such a launcher has started. path: of its socket. Throws std::system_error.
  [[nodiscard]] static base::Descriptor connect(const std::string& path);

  // plan: of the command "start". socket: the path of a socket to be made, in a folder of this user alone. signals: are
  // restored in the child. tell: gets lines for the launcher of Tenon: those of the processes, and {"refused": ...} if
  // they do not come. Throws std::system_error.
  World(const json& plan, const std::string& socket, const Signals& signals, std::function<void(const json&)> tell);
  ~World();

  // with_output: whether to read what the processes say and print.
  void add_waits(std::vector<Wait>& waits, bool with_output);
  // Sends a line to the agents of all processes.
  void send(const json& line);
  // Ends the launcher of the MPI, and its processes with it.
  void kill() const noexcept { child_->send(SIGKILL); }
  // Whether all processes have ended, and the launcher of the MPI. Says so of processes that cannot do it themselves.
  [[nodiscard]] bool has_ended();

 private:
  // The agent of a process.
  struct Member {
    explicit Member(base::Descriptor socket);
    std::optional<Channel> channel;  // until it has said how its process has ended
    int64_t rank = -1;               // -1: it has not said it
    bool over = false;
  };
  void accept();
  void receive(Member& member);
  // Takes what a member says first. Returns false if it is not a process that is missing.
  [[nodiscard]] bool greet(Member& member, const json& hello);
  // Says that the processes do not come, once that is so.
  void give_up();
  void tell_end(int64_t rank) const;

  const json plan_;
  const std::function<void(const json&)> tell_;
  const std::vector<std::string> launcher_;
  base::Descriptor listening_;
  LastWords words_;            // of the launcher of the MPI
  std::list<Member> members_;  // where they are: they are waited for
  std::vector<bool> begun_;    // of each process: whether its agent has come
  std::optional<process::Child> child_;
  const Clock::time_point since_ = Clock::now();
  std::optional<Clock::time_point> over_;  // since when no process is left
  bool given_up_ = false;
};

}  // namespace tenon::launch
