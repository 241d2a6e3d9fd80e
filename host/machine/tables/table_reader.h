// The rows of tables in their order, from all owners. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "host/comm/team.h"
#include "host/machine/tables/table_owners.h"

namespace tenon::host {

using namespace core;

// Process 0 reads, the others serve it: collective from the construction to end() and the end of serve().
class TableReader : base::NotCopied {
 public:
  // Borrows both. set: as of TableOwners.
  TableReader(Team& team, const ParameterSet& set) : team_(team), set_(set), owners_(&team, set) {}

  // Of process 0. Reads rows of a table of the set; to: [count, width].
  void read(const ParameterEntry& table, int64_t first, int64_t count, float* to);
  // After the last read: lets the other processes go on. failed: they throw.
  void end(bool failed);
  // Of the others: gives rows until process 0 ends. Throws TN_IO if it failed.
  void serve();

 private:
  struct Request {
    int64_t table;  // number of the entry in the set; kDone, kFailed: the last request
    int64_t first, count;
  };
  static constexpr int64_t kDone = -1, kFailed = -2;
  // Returns the rows of this process.
  [[nodiscard]] std::span<const float> rows(const ParameterEntry& table, int64_t first, int64_t count) const;

  Team& team_;
  const ParameterSet& set_;
  TableOwners owners_;
};

}  // namespace tenon::host
