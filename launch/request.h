// What the command asks of the launcher. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "host/cli/verbs/train_arguments.h"
#include "launch/nodes.h"
#include "launch/watch.h"

namespace tenon::launch {

// Returns the machines and their processes: of --nodes, or this one with those of --processes and --servers.
// first_is_here: whether the first of --nodes is this one.
[[nodiscard]] std::vector<Node> nodes_of(const cli::TrainCommand& command, bool first_is_here);
[[nodiscard]] WatchOptions watch_of(const cli::LaunchArguments& launch);
// Returns the host and the port of --address: 0 without one. first: the machine of process 0.
[[nodiscard]] std::pair<std::string, int> listen_of(const std::string& address, const Node& first);

// Refuses to start processes inside of a process that is one of several already.
void check_alone();
// Refuses several machines for an MPI. The launcher of an MPI starts processes on this machine, or on another one,
// under the agent there; on several ones it starts them itself.
void check_mpi(const std::string& comm, const std::vector<Node>& nodes, const std::string& job);

}  // namespace tenon::launch
