// What MPI changes in its process, and its way back. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tenon_mpi {

// While it exists, the environment tells MPI libraries to install no handlers of crashes and no hooks of memory. The
// end restores environment, signal handlers and limits.
class Hooks {
 public:
  Hooks();
  ~Hooks();
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

 private:
  std::map<std::string, std::string> environment_;
  std::vector<std::pair<int, struct sigaction>> handlers_;
  std::vector<std::pair<int, rlimit>> limits_;
};

}  // namespace tenon_mpi
