// The public C API: teams of processes. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_team.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/launchers.h"
#include "host/api/api.h"
#include "host/api/held_team.h"
#include "host/comm/secret.h"

namespace api = tenon::host::api;
using namespace tenon::host;

namespace {

// Returns the communicator of the MPI whose launcher has started this process, else "zmq".
std::string default_comm() {
  try {
    const auto place = tenon::base::place_by_mpi();
    return place ? place->comm : "zmq";
  } catch (const std::invalid_argument& error) {
    fail(TN_INVALID, SubjectName{"comm"}, error.what());
  }
}

Values attributes_of(const char* text) {
  if (text == nullptr || *text == '\0') return {};
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object())
    fail(TN_INVALID, SubjectName{"options.attributes"}, "options.attributes is not a JSON object");
  Values values;
  for (const auto& [name, value] : object.items()) values[name] = value_from_json(value);
  return values;
}

int64_t number(int64_t value, int64_t least, int64_t most, const char* name) {
  if (value != -1 && (value < least || value > most))
    fail(TN_INVALID, SubjectName{name}, "options.", name, " is ", value, "; expected ", least, " to ", most,
         ", or -1 for what the launcher says");
  return value;
}

int32_t milliseconds(double seconds, const char* name) {
  constexpr double kMost = 86400;  // a day
  if (!(seconds >= 0 && seconds <= kMost))
    fail(TN_INVALID, SubjectName{name}, "options.", name, " is ", seconds, "; expected 0 to ", kMost);
  return static_cast<int32_t>(std::lround(seconds * 1000));
}

}  // namespace

tn_status tn_team_join(tn_host* host, const tn_team_options* options, tn_team* team, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const tn_team_options request = api::sized(options, "options");
    api::required(team, "team");
    constexpr int64_t kMostProcesses = 65536;
    JoinOptions join;
    join.rank = number(request.rank, 0, kMostProcesses - 1, "rank");
    join.ranks = number(request.processes, 1, kMostProcesses, "processes");
    if (join.ranks != -1 && join.rank >= join.ranks)
      fail(TN_INVALID, SubjectName{"rank"}, "options.rank is ", join.rank, "; expected less than the ", join.ranks,
           " processes");
    if (request.servers < 0)
      fail(TN_INVALID, SubjectName{"servers"}, "options.servers is ", request.servers, "; expected at least 0");
    join.servers = request.servers;
    join.epoch = request.epoch;
    if (request.address != nullptr) join.address = request.address;
    if (request.listen != nullptr) join.listen = request.listen;
    join.deadline_ms = milliseconds(request.deadline_seconds, "deadline_seconds");
    join.silence_ms = milliseconds(request.silence_seconds, "silence_seconds");
    const Values attributes = attributes_of(request.attributes);
    const bool chosen = request.comm != nullptr && *request.comm != '\0';
    const CommType& type = owner.registry.comm(chosen ? request.comm : default_comm());
    if (request.secret != nullptr) join.secret = read_secret(request.secret);
    *team = owner.teams.add<tn_team>(std::make_shared<HeldTeam>(
        std::make_unique<Team>(type, attributes, owner.services.tables(type), join, &owner.ending)));
  });
}

tn_status tn_team_inspect(tn_host* host, tn_team team, tn_team_info* info, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::sized(info, "info");
    const std::shared_ptr<HeldTeam> held = owner.teams.at(team);
    tn_team_info result = {};
    const World& world = held->team->world();
    result.epoch = world.epoch();
    result.rank = world.rank();
    result.processes = world.ranks();
    result.comm = world.comm().c_str();
    result.refused = world.refused();
    result.step = held->team->step();
    result.waits_for = world.waits_for();
    result.servers = held->team->servers();
    api::give(info, "info", result);
  });
}

tn_status tn_team_leave(tn_host* host, tn_team team, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::shared_ptr<HeldTeam> held = owner.teams.at(team);
    const Use use(held->mark, "team");
    owner.teams.take(team);
  });
}
