// SPDX-License-Identifier: Apache-2.0
#include "launch/request.h"

#include <optional>
#include <stdexcept>

#include "base/launchers.h"
#include "base/text.h"
#include "base/whole_number.h"
#include "host/cli/cli.h"
#include "launch/node/world.h"
#include "launch/texts.h"

namespace tenon::launch {

using cli::Failure;

std::vector<Node> nodes_of(const cli::TrainCommand& command, bool first_is_here) {
  const cli::LaunchArguments& launch = command.arguments.launch;
  if (launch.nodes.empty()) {
    Node here;
    here.processes = launch.processes + launch.servers;
    return {here};
  }
  try {
    std::vector<Node> nodes = parse_nodes(launch.nodes);
    nodes.front().is_here = first_is_here;
    if (const int64_t count = processes_of(nodes); launch.servers >= count)
      command.options.fail("--servers " + std::to_string(launch.servers) + ": --nodes has " +
                           counted(count, "process", "processes") + ", of which one at least has to train");
    return nodes;
  } catch (const std::invalid_argument& error) {
    command.options.fail(std::string("--nodes: ") + error.what());
  }
}

WatchOptions watch_of(const cli::LaunchArguments& launch) {
  const auto seconds = [](double number) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(number));
  };
  WatchOptions result;
  result.silence = seconds(launch.silence);
  result.stall = seconds(launch.stall);
  return result;
}

std::pair<std::string, int> listen_of(const std::string& address, const Node& first) {
  if (address.empty()) return {first.host(), 0};
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || address.find(']', colon) != std::string::npos) return {address, 0};
  const int port = base::whole_number<int>(std::string_view(address).substr(colon + 1)).value_or(0);
  if (port < 1 || port > 65535 || colon == 0)
    throw Failure(cli::kUsage, "--address: expected HOST or HOST:PORT, got \"" + address + "\"");
  return {address.substr(0, colon), port};
}

void check_alone() try {
  if (const auto place = base::launched_place())
    throw Failure(cli::kBadConfig, "this process is one of " + std::to_string(place->processes) + " that " +
                                       place->launcher + " has started (" + place->processes_name +
                                       "): leave out --processes and --nodes");
} catch (const std::invalid_argument& error) {
  throw Failure(cli::kUsage, error.what());
}

void check_mpi(const std::string& comm, const std::vector<Node>& nodes, const std::string& job) {
  if (nodes.size() < 2 || !World::connects(comm)) return;
  std::string command, hosts;
  for (const Node& node : nodes) base::append(hosts, node.host() + ":" + std::to_string(node.processes), ",");
  for (const std::string& word : World::launcher_of(comm, processes_of(nodes), hosts)) base::append(command, word, " ");
  throw Failure(cli::kBadConfig,
                "--comm " + comm +
                    ": tenon starts the processes of an MPI on one machine; on several ones that is for "
                    "the launcher of the MPI: " +
                    command + " tenon train " + job);
}

}  // namespace tenon::launch
