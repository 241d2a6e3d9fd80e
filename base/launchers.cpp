// SPDX-License-Identifier: Apache-2.0
#include "base/launchers.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "base/whole_number.h"

namespace tenon::base {

namespace {

// The variables of a launcher.
struct Variables {
  const char* launcher;
  const char* comm;
  const char *rank, *processes, *local;
};
constexpr Variables kTenon = {"tenon", "", "TENON_TEAM_RANK", "TENON_TEAM_PROCESSES", "TENON_TEAM_LOCAL"};
constexpr Variables kMpis[] = {
    {"Open MPI", "openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH", "mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"}};

std::optional<LaunchedPlace> place_by(const Variables& names) {
  const int64_t processes = environment_number(names.processes, 0);
  if (processes == 0) return std::nullopt;
  return LaunchedPlace{*names.comm == '\0', names.launcher,
                       names.comm,          environment_number(names.rank, 0),
                       processes,           std::max<int64_t>(environment_number(names.local, 1), 1),
                       names.processes};
}

}  // namespace

int64_t environment_number(const char* variable, int64_t otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  const int64_t number = whole_number<int64_t>(text).value_or(-1);
  if (number < 0) throw std::invalid_argument(std::string(variable) + " is \"" + text + "\"; expected a number");
  return number;
}

std::optional<LaunchedPlace> place_by_mpi(std::string_view comm) {
  for (const Variables& names : kMpis)
    if (comm.empty() || comm == names.comm)
      if (auto place = place_by(names)) return place;
  return std::nullopt;
}

std::optional<LaunchedPlace> launched_place() {
  if (auto place = place_by(kTenon)) return place;
  auto place = place_by_mpi();
  if (place && place->processes == 1) place.reset();
  return place;
}

}  // namespace tenon::base
