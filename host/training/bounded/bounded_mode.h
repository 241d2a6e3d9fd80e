// The place of a process in a training of the bounded mode. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "host/comm/team.h"
#include "host/training/bounded/row_client.h"

namespace tenon::host {

using namespace core;

// Process 0 and the servers are a team that decides, tests and saves together; the other trainers compute, and may be
// lost.
class BoundedMode : base::NotCopied {
 public:
  // staleness: as of Leases. Throws TN_INVALID for a team without servers.
  BoundedMode(Team& all, int64_t staleness);

  [[nodiscard]] Team& all() const { return all_; }
  // Of this process; null in a trainer but process 0.
  [[nodiscard]] Team* core() const { return core_.get(); }
  [[nodiscard]] bool is_server() const { return all_.rank() >= all_.trainers(); }
  [[nodiscard]] int64_t staleness() const { return staleness_; }
  // Of a trainer: where its machine gets rows from.
  [[nodiscard]] RowClient& rows() { return rows_; }

 private:
  Team& all_;
  int64_t staleness_;
  std::unique_ptr<Team> core_;
  RowClient rows_;
};

}  // namespace tenon::host
