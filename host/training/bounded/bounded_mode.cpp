// SPDX-License-Identifier: Apache-2.0
#include "host/training/bounded/bounded_mode.h"

#include "core/error.h"

namespace tenon::host {

namespace {

Team& with_servers(Team& team, int64_t staleness) {
  if (team.servers() == 0)
    fail(TN_INVALID, SubjectName{"staleness"}, "staleness is ", staleness,
         ": in the bounded mode servers have the parameters, and the team has none; start some, as by --servers 1, or "
         "leave out staleness");
  return team;
}

}  // namespace

BoundedMode::BoundedMode(Team& all, int64_t staleness)
    : all_(with_servers(all, staleness)),
      staleness_(staleness),
      core_(all.rank() == 0 || all.rank() >= all.trainers() ? all.of_first_and_servers() : nullptr),
      rows_(all) {}

}  // namespace tenon::host
