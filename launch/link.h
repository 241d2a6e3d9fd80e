// The launcher's connection with the agent of a machine. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/channel.h"
#include "launch/child.h"
#include "launch/events.h"
#include "launch/nodes.h"
#include "process/child.h"

namespace tenon::launch {

// Starts an agent: on this machine as a child, on another one by ssh, whose standard input and output are the
// connection. Anything else that carries both to a machine would do, such as `kubectl exec -i`.
class Link : base::NotCopied {
 public:
  // handle: called with each line of the agent but the first. Throws std::system_error.
  Link(const Node& node, const Signals& signals, std::function<void(const json&)> handle);
  // Takes the connection with an agent that comes by itself. handle: likewise.
  Link(const Node& node, base::Descriptor socket, std::function<void(const json&)> handle);
  ~Link();

  void add_waits(std::vector<Wait>& waits);
  void send(const json& line);
  // Sends a sign of life, if it is time.
  void ping(Clock::time_point now);

  [[nodiscard]] const std::string& node() const { return node_; }
  [[nodiscard]] bool is_far() const { return is_far_; }
  // What the agent says of itself and of its machine: {"version", "host", "cores"}; empty as long as it has said
  // nothing.
  [[nodiscard]] const std::optional<json>& hello() const { return hello_; }
  // Whether the agent, or the connection with it, has ended.
  [[nodiscard]] bool has_ended();
  // Why, for a message: "ssh has ended with exit code 255: Permission denied (publickey)".
  [[nodiscard]] std::string ending();
  // The exit code of an ssh or agent that has ended; 128 + n after signal n.
  [[nodiscard]] int exit_code();
  // Returns when something was heard of it.
  [[nodiscard]] Clock::time_point heard() const { return heard_; }
  // Ends the connection at once; the agent then ends its processes, and itself.
  void cut();
  // Closes the direction to the agent, which ends when its processes have.
  void finish();

 private:
  void receive();
  // Reads the last words until the child has ended, at most for this time.
  void await_end(std::chrono::seconds most);

  const std::string node_;  // empty: this machine
  const bool is_far_;
  std::function<void(const json&)> handle_;
  std::optional<Channel> channel_;
  LastWords errors_;                     // of standard error
  std::optional<process::Child> child_;  // empty: the agent has come by itself
  std::optional<json> hello_;
  Clock::time_point heard_, pinged_;
  bool open_ = true;
};

}  // namespace tenon::launch
