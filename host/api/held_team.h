// A team that an application has joined. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "host/api/host/use_mark.h"
#include "host/comm/team.h"

namespace tenon::host {

struct HeldTeam {
  explicit HeldTeam(std::unique_ptr<Team> joined) : team(std::move(joined)) {}
  void set_name(std::string name) { mark.set_name(std::move(name)); }

  const std::unique_ptr<Team> team;
  UseMark mark;
};

}  // namespace tenon::host
