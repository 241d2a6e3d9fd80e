// SPDX-License-Identifier: Apache-2.0
#include "host/cli/team.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <thread>

#include "base/launchers.h"
#include "host/cli/options.h"

namespace tenon::cli {

std::optional<JoinedTeam> team_of_environment() try {
  const auto place = base::launched_place();
  if (!place) return std::nullopt;
  JoinedTeam team;
  team.started_by = place->launcher;
  team.local = place->local;
  team.options.comm = place->comm;
  team.options.processes = place->processes;
  team.options.rank = place->rank;
  if (!place->by_tenon && place->address.empty()) return team;
  team.options.address = base::environment_text("TENON_TEAM_ADDRESS");
  team.options.listen = base::environment_text("TENON_TEAM_LISTEN");
  team.options.secret = base::environment_text("TENON_TEAM_SECRET");
  if (place->by_tenon) {
    team.options.comm = base::environment_text("TENON_TEAM_COMM");
  } else if (team.options.address.empty()) {
    team.options.address = place->address;
  }
  if (!place->by_tenon && team.options.secret.empty())
    throw Failure(kUsage,
                  place->launcher + " has started " + std::to_string(place->processes) + " processes (" +
                      place->processes_name +
                      ") without PMI: they train together if TENON_TEAM_SECRET is the "
                      "path of a file of 16 random bytes or more, which only its owner may read, and each alone "
                      "with TENON_TEAM_PROCESSES=1");
  team.options.epoch = static_cast<uint32_t>(base::environment_number("TENON_TEAM_EPOCH", 0));
  return team;
} catch (const std::invalid_argument& error) {
  throw Failure(kUsage, error.what());
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
