// Tenon's public API for C++17 and later, a draft: several processes that train one model.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_TEAM_HPP
#define TENON_TENON_TEAM_HPP

#include <tenon/tenon_team.h>

#include <tenon/tenon_model.hpp>
#include <tenon/tenon_team_options.hpp>

namespace tenon {
inline namespace v0 {

// The processes of a training, as tn_team_join documents them; the last copy leaves the team.
class Team : public detail::Owned<tn_team, tn_team_leave> {
 public:
  using Owned::Owned;
  [[nodiscard]] tn_team_info info() const {
    tn_team_info info = {};
    info.size = sizeof info;
    detail::checked([&](tn_error* error) { return tn_team_inspect(host(), handle(), &info, error); });
    return info;
  }
};

}  // namespace v0
}  // namespace tenon
#endif
