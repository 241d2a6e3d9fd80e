// Teams of processes that train together. SPDX-License-Identifier: Apache-2.0
#include "base/launchers.h"
#include "core.h"
#include "team_options.h"

namespace tenon_python {

namespace {

using tenon::Team;

void join(Team* place, const tenon::Host& host, const nb::dict& arguments) {
  tenon::TeamOptions options;
  read(arguments, &options);
  new (place) Team(unlocked([&] { return host.join(options); }));
}

nb::dict info(const Team& team) {
  const tn_team_info info = team.info();
  nb::dict result;
  result["rank"] = info.rank;
  result["processes"] = info.processes;
  result["comm"] = info.comm;
  result["epoch"] = info.epoch;
  result["refused"] = info.refused;
  result["step"] = info.step;
  result["waits_for"] = info.waits_for;
  result["servers"] = info.servers;
  return result;
}

using Place = std::tuple<std::string, std::string, int64_t, int64_t, int64_t, std::string, int64_t>;
// Returns launcher, communicator, rank, processes, those on this machine, address, and the epoch, -1 if the launcher is
// not Tenon's; None if this process was started alone.
std::optional<Place> launched_place() {
  const auto place = tenon::base::launched_place();
  if (!place) return std::nullopt;
  const int64_t epoch = place->by_tenon ? tenon::base::environment_number("TENON_TEAM_EPOCH", 0) : -1;
  return Place(place->launcher, place->comm, place->rank, place->processes, place->local, place->address, epoch);
}

// Unlike the end of the last copy, says why the team cannot be left.
void leave(Team& team) {
  unlocked([&] {
    tenon::detail::checked([&](tn_error* error) { return tn_team_leave(team.host(), team.handle(), error); });
    team.forget();
  });
}

}  // namespace

void bind_team(nb::module_& module) {
  nb::class_<Team>(module, "Team").def("__init__", join).def("info", info).def("leave", leave);
  module.def("launched_place", launched_place);
  module.def("version", tn_version);
}

}  // namespace tenon_python
