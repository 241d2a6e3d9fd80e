// SPDX-License-Identifier: Apache-2.0
#include "base/launchers.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
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
  LaunchedPlace place;
  place.launcher = names.launcher;
  place.comm = names.comm;
  place.rank = environment_number(names.rank, 0);
  place.processes = processes;
  place.local = std::max<int64_t>(environment_number(names.local, 1), 1);
  place.processes_name = names.processes;
  return place;
}

// Returns the first machine of a list such as "node[03-05,9]-ib,login": "node03-ib".
std::string first_machine(const std::string& list) {
  const size_t open = list.find_first_of("[,");
  if (open == std::string::npos || list[open] == ',') return list.substr(0, open);
  const size_t close = list.find(']', open), number = list.find_first_of("-,]", open);
  if (close == std::string::npos) return "";
  const std::string rest = list.substr(close + 1);
  return list.substr(0, open) + list.substr(open + 1, number - open - 1) + rest.substr(0, rest.find(','));
}

// Returns the number of a machine in a list such as "2(x3),1", which states 2 for three machines and 1 for the fourth.
int64_t number_of_machine(const std::string& list, int64_t machine) {
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t times = part.find("(x");
    const int64_t number = whole_number<int64_t>(part.substr(0, times)).value_or(1);
    const size_t digits = times == std::string::npos ? times : part.find(')', times);
    if (digits != std::string::npos)
      machine -= whole_number<int64_t>(part.substr(times + 2, digits - times - 2)).value_or(1);
    else
      --machine;
    if (machine < 0) return number;
  }
  return 1;
}

// Slurm's variables of a step, which srun alone sets; those of a job are also set where nothing starts several
// processes. With PMIx the MPI of that finds its place itself.
std::optional<LaunchedPlace> place_by_srun() {
  constexpr Variables kSrun = {"srun", "zmq", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ""};
  std::optional<LaunchedPlace> place = place_by(kSrun);
  if (!place) return place;
  place->local = std::max<int64_t>(
      number_of_machine(environment_text("SLURM_STEP_TASKS_PER_NODE"), environment_number("SLURM_NODEID", 0)), 1);
  if (std::getenv("PMIX_RANK") != nullptr) {
    place->comm = "openmpi";
    return place;
  }
  // A port that follows from job and step, since all processes must know it: others seldom have it.
  constexpr int64_t kFirstPort = 20'000, kPorts = 12'000, kSteps = 61;
  const int64_t start = environment_number("SLURM_JOB_ID", 0) * kSteps + environment_number("SLURM_STEP_ID", 0);
  place->address = "tcp://" + first_machine(environment_text("SLURM_STEP_NODELIST")) + ":" +
                   std::to_string(kFirstPort + start % kPorts);
  return place;
}

}  // namespace

std::string environment_text(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

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
  if (auto place = place_by(kTenon)) {
    place->by_tenon = true;
    if (place->processes == 1 && std::getenv(kTenon.rank) == nullptr) place.reset();
    return place;
  }
  auto place = place_by_mpi();
  if (!place) place = place_by_srun();
  if (place && place->processes == 1) place.reset();
  return place;
}

}  // namespace tenon::base
