// What launchers of several processes say to each in its environment. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::base {

// The place of a process among those that were started together.
struct LaunchedPlace {
  bool by_tenon = false;
  std::string launcher;  // its name, for messages
  std::string comm;      // the communicator that it serves, "zmq" for any; empty: by Tenon's launcher
  std::string address;   // where rank 0 may listen; empty: the launcher connects them, or Tenon's says it elsewhere
  int64_t rank = 0, processes = 1;
  int64_t local = 1;           // of the processes, on this machine
  std::string processes_name;  // the variable that states the processes
};

// Returns the place of this process if it is one of several: by Tenon's launcher, which may also start one alone, else
// by the one of an MPI, else by srun of Slurm. Empty if it was started alone, or if TENON_TEAM_PROCESSES is 1 and
// states no rank. Throws std::invalid_argument for a variable that is not a number, as the next two.
[[nodiscard]] std::optional<LaunchedPlace> launched_place();
// Returns the place that the launcher of an MPI has given to this process: the first of Open MPI's, MPICH's and others
// with PMI that has set its variables, or that of this communicator; empty without one.
[[nodiscard]] std::optional<LaunchedPlace> place_by_mpi(std::string_view comm = {});

// Returns the text of a variable of the environment, "" if it is unset.
[[nodiscard]] std::string environment_text(const char* variable);
// Returns the number in a variable of the environment, `otherwise` if it is unset or empty.
[[nodiscard]] int64_t environment_number(const char* variable, int64_t otherwise);

}  // namespace tenon::base
