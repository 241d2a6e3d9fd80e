// The team in which a process of `tenon train` was started. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tenon/tenon.hpp>

#include "process/control.h"

namespace tenon::cli {

struct JoinedTeam {
  TeamOptions options;
  std::string started_by;  // for messages: "tenon", "mpich", "openmpi"
  int64_t local = 1;       // processes on this machine
  [[nodiscard]] bool leads() const { return options.rank == 0; }
};

// Reads the environment: base::launched_place, and TENON_TEAM_*. Empty if the process was started alone. Throws
// Failure(kUsage) for numbers that are none, and for processes of srun without a secret.
[[nodiscard]] std::optional<JoinedTeam> team_of_environment();

// Runs `work`, which returns or throws an exit code, and tells the code to the launcher that supervises this process,
// if one does. control: null then.
[[nodiscard]] int supervised(const std::function<int(process::Control* control)>& work);
// Whether a training failed because another process is lost.
[[nodiscard]] bool is_of_lost_process(const Error& error);

// Returns the threads of a process among so many on this machine: its share of the cores that it may use, unless the
// launcher has given it cores of its own.
[[nodiscard]] int64_t threads_among(int64_t processes);

}  // namespace tenon::cli
