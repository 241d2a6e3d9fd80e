// The place of a process in a training of the bounded mode. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

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
  ~BoundedMode();

  [[nodiscard]] Team& all() const { return all_; }
  // Of this process; null in a trainer but process 0.
  [[nodiscard]] Team* core() const { return core_.get(); }
  [[nodiscard]] bool is_server() const { return all_.rank() >= all_.trainers(); }
  [[nodiscard]] int64_t staleness() const { return staleness_; }
  // What must be equal in all processes, by name, such as "job" or "plugin tenon.fc". Set before the training.
  [[nodiscard]] const std::map<std::string, std::string>& parts() const { return parts_; }
  void add_parts(const std::map<std::string, std::string>& parts) { parts_.insert(parts.begin(), parts.end()); }
  // A line for each.
  [[nodiscard]] std::string description() const;
  // Returns the name of the first part that is another one in such a description; empty if none is.
  [[nodiscard]] std::string difference(const std::string& description) const;
  // Of a trainer: where its machine gets rows from.
  [[nodiscard]] RowClient& rows() { return rows_; }

 private:
  Team& all_;
  int64_t staleness_;
  std::unique_ptr<Team> core_;
  RowClient rows_;
  std::map<std::string, std::string> parts_;
};

}  // namespace tenon::host
