// The machines of a training, and how many processes each has. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::launch {

struct Node {
  std::string name;       // as ssh takes it, such as "ann@node1"; empty: this machine
  int64_t processes = 1;  // on it
  int64_t first = 0;      // the number of its first process
  int64_t cores = 1;      // that a process there may use
  bool is_here = false;   // although it has a name

  // Returns the name without a user.
  [[nodiscard]] std::string host() const;
  // Returns the compute threads of each of its processes.
  [[nodiscard]] int64_t threads() const;
};

// Returns the nodes of "node0,node1:2", whose processes are numbered in their order. An IPv6 address is in brackets.
// Throws std::invalid_argument, whose text says what is wrong.
[[nodiscard]] std::vector<Node> parse_nodes(const std::string& text);
// Numbers the processes anew, after a node was removed.
void number_processes(std::vector<Node>& nodes);
[[nodiscard]] int64_t processes_of(const std::vector<Node>& nodes);

// Returns who does what: "process 0 on node0 trains, tests and saves, ...".
[[nodiscard]] std::string roles_of(const std::vector<Node>& nodes, bool states_threads, int64_t servers,
                                   bool is_bounded);

}  // namespace tenon::launch
