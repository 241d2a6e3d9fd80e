// What launchers of processes say in the environment. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tenon_mpi {

struct Place {
  int32_t rank;
  int32_t ranks;
};

// The place that the launcher of this MPI has given to the process, if it started the process.
std::optional<Place> launched_place();
// How many processes any launcher started with this one, as far as it says so; at least 1.
int32_t started_processes();

// Throws tn::Failure with TN_INVALID if the process has another place than expected (-1: any), or if it is a world of
// its own beside others that were started with it.
void check_place(const Place& place, int32_t rank, int32_t ranks);

}  // namespace tenon_mpi
