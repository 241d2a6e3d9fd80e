// SPDX-License-Identifier: Apache-2.0
#include "host/training/bounded/bounded_mode.h"

#include <sstream>

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
      rows_(all) {
  World& world = all_.world();
  world.set_spare(1, world.ranks() - world.servers());
}

BoundedMode::~BoundedMode() { all_.world().set_spare(0, 0); }

std::string BoundedMode::description() const {
  std::string text;
  for (const auto& [name, value] : parts_) text += name + '\t' + value + '\n';
  return text;
}

// A part that only one of two processes has is no difference.
std::string BoundedMode::difference(const std::string& description) const {
  std::istringstream lines(description);
  for (std::string name, value; std::getline(lines, name, '\t') && std::getline(lines, value);)
    if (const auto part = parts_.find(name); part != parts_.end() && part->second != value) return name;
  return "";
}

}  // namespace tenon::host
