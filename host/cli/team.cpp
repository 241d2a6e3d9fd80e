// SPDX-License-Identifier: Apache-2.0
#include "host/cli/team.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>

#include "base/whole_number.h"
#include "host/cli/options.h"

namespace tenon::cli {

namespace {

// Returns the text of a variable of the environment, "" if it is not set.
std::string text_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

int64_t number_of(const char* variable, int64_t otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  const int64_t number = base::whole_number<int64_t>(text).value_or(-1);
  if (number < 0) throw Failure(kUsage, std::string(variable) + " is \"" + text + "\"; expected a number");
  return number;
}

// The variables of a launcher.
struct Launcher {
  const char* name;
  const char* comm;
  const char *rank, *processes, *local;
};

std::optional<JoinedTeam> started_by(const Launcher& launcher) {
  const int64_t processes = number_of(launcher.processes, 0);
  if (processes == 0) return std::nullopt;
  JoinedTeam team;
  team.started_by = launcher.name;
  team.options.comm = launcher.comm;
  team.options.processes = processes;
  team.options.rank = number_of(launcher.rank, 0);
  team.local = std::max<int64_t>(number_of(launcher.local, 1), 1);
  return team;
}

}  // namespace

std::optional<JoinedTeam> team_of_environment() {
  if (auto team = started_by({"tenon", "", "TENON_TEAM_RANK", "TENON_TEAM_PROCESSES", "TENON_TEAM_LOCAL"})) {
    team->options.comm = text_of("TENON_TEAM_COMM");
    team->options.address = text_of("TENON_TEAM_ADDRESS");
    team->options.listen = text_of("TENON_TEAM_LISTEN");
    team->options.secret = text_of("TENON_TEAM_SECRET");
    team->options.epoch = static_cast<uint32_t>(number_of("TENON_TEAM_EPOCH", 0));
    return team;
  }
  constexpr Launcher kLaunchers[] = {
      {"Open MPI", "openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"MPICH", "mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"}};
  for (const Launcher& launcher : kLaunchers) {
    std::optional<JoinedTeam> team = started_by(launcher);
    if (team && team->options.processes > 1) return team;
  }
  return std::nullopt;
}

int supervised(const std::function<int(process::Control* control)>& work) {
  std::unique_ptr<process::Control> control;
  try {
    control = process::Control::from_environment();
  } catch (const std::runtime_error& error) {
    throw Failure(kUsage, error.what());
  }
  const auto tell = [&](int code) {
    if (control != nullptr) control->done(code);
    return code;
  };
  try {
    return tell(work(control.get()));
  } catch (const Failure& failure) {
    tell(failure.exit());
    throw;
  } catch (const Error& error) {
    tell(exit_code(error.code()));
    throw;
  }
}

bool is_of_lost_process(const Error& error) { return error.code() == TN_IO && error.subject() == "team"; }

int64_t threads_among(int64_t processes) {
  const auto usable = static_cast<int64_t>(std::max(std::thread::hardware_concurrency(), 1U));
  const bool has_own_cores = usable < sysconf(_SC_NPROCESSORS_ONLN);
  return has_own_cores ? usable : std::max<int64_t>(usable / processes, 1);
}

}  // namespace tenon::cli
