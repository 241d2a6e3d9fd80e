// SPDX-License-Identifier: Apache-2.0
#include "launch/nodes.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "base/text.h"
#include "base/whole_number.h"
#include "host/cli/verbs/train_arguments.h"
#include "launch/texts.h"

namespace tenon::launch {

namespace {

// Whether ssh can take the text for a machine, and for nothing else.
bool is_machine(const std::string& name) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@:%[]";
  const size_t at = name.find('@');
  return !name.empty() && name.front() != '-' && name.find_first_not_of(kLetters) == std::string::npos && at != 0 &&
         at + 1 != name.size() && (at == std::string::npos || name[at + 1] != '-');
}

Node node_of(const std::string& text) {
  Node node;
  const size_t bracket = text.rfind(']'), colon = text.rfind(':');
  const bool states = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  node.name = states ? text.substr(0, colon) : text;
  if (!is_machine(node.name) || (bracket == std::string::npos && node.name.find(':') != std::string::npos))
    throw std::invalid_argument("expected the name of a machine, or NAME:PROCESSES, got \"" + text + "\"");
  if (!states) return node;
  node.processes = base::whole_number<int64_t>(std::string_view(text).substr(colon + 1)).value_or(0);
  if (node.processes < 1 || node.processes > cli::kMostProcesses)
    throw std::invalid_argument("expected 1 to " + std::to_string(cli::kMostProcesses) + " processes behind \"" +
                                node.name + ":\", got \"" + text.substr(colon + 1) + "\"");
  return node;
}

// Returns "process 1", "processes 1 and 2", "processes 1 to 7".
std::string range(int64_t first, int64_t count) {
  if (count == 1) return "process " + std::to_string(first);
  return "processes " + std::to_string(first) + (count == 2 ? " and " : " to ") + std::to_string(first + count - 1);
}

}  // namespace

std::string Node::host() const {
  std::string host = name.substr(name.find('@') + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

int64_t Node::threads() const { return std::max<int64_t>(1, cores / processes); }

std::vector<Node> parse_nodes(const std::string& text) {
  std::vector<Node> result;
  std::istringstream parts(text + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    const Node node = node_of(part);
    for (const Node& other : result)
      if (other.name == node.name)
        throw std::invalid_argument("\"" + node.name + "\" is there twice; " + node.name +
                                    ":2 has two processes on that machine");
    result.push_back(node);
  }
  number_processes(result);
  if (const int64_t count = processes_of(result); count > cli::kMostProcesses)
    throw std::invalid_argument("expected at most " + std::to_string(cli::kMostProcesses) + " processes, got " +
                                std::to_string(count));
  return result;
}

void number_processes(std::vector<Node>& nodes) {
  int64_t next = 0;
  for (Node& node : nodes) {
    node.first = next;
    next += node.processes;
  }
}

int64_t processes_of(const std::vector<Node>& nodes) {
  return nodes.empty() ? 0 : nodes.back().first + nodes.back().processes;
}

std::string roles_of(const std::vector<Node>& nodes, bool states_threads, int64_t servers, bool is_bounded) {
  const int64_t trainers = processes_of(nodes) - servers;
  std::string result;
  for (const Node& node : nodes) {
    const std::string place = node.name.empty() ? "" : " on " + node.name;
    std::string threads;
    if (states_threads)
      threads = " (" + counted(node.threads(), "thread", "threads") + (node.processes > 1 ? " each)" : ")");
    const int64_t end = node.first + node.processes;
    std::string roles;  // of its processes
    const auto add = [&](int64_t first, int64_t last, const char* one, const char* several) {
      if (first < last) base::append(roles, range(first, last - first) + place + (last - first == 1 ? one : several));
    };
    if (node.first == 0) roles = "process 0" + place + " trains, tests, reports and saves";
    const int64_t begin_of_servers = std::clamp(trainers, node.first, end);
    add(std::max<int64_t>(node.first, 1), begin_of_servers, " trains", " train");
    add(begin_of_servers, end, is_bounded ? " serves parameters" : " owns rows of tables",
        is_bounded ? " serve parameters" : " own rows of tables");
    base::append(result, roles + threads, "; ");
  }
  return result;
}

}  // namespace tenon::launch
