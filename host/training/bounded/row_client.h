// The rows of tables that a trainer of the bounded mode asks the servers for. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "host/comm/team.h"
#include "host/machine/tables/messages.h"
#include "host/machine/tables/row_source.h"
#include "host/training/bounded/protocol.h"

namespace tenon::host {

using namespace core;

// Over all servers of a team, each of which has its rows (core/table_rows.h).
class RowClient final : public RowSource {
 public:
  explicit RowClient(Team& team) : world_(team.world()), first_(world_.ranks() - world_.servers()) {}

  [[nodiscard]] int64_t servers() const { return world_.servers(); }
  // The rank of a server, by its number.
  [[nodiscard]] int64_t rank_of(int64_t server) const { return first_ + server; }
  // Of the requests that follow.
  void set_serial(int64_t serial) { serial_ = serial; }

  void fetch(const std::vector<MachineTable>& tables, std::vector<TableRows>& rows) override;
  void take(size_t table, RowTerms gradient) override { gradients_[table] = std::move(gradient); }

  // Returns the gradients of the rows of a server, which follow one another by table: their number, ids, values. extra:
  // bytes behind them, which the caller fills.
  [[nodiscard]] Message gradients_of(int64_t server, uint64_t extra) const;

 private:
  // A request, the room for its answer, and the rows that it is about.
  struct Asked {
    BoundedRequest request;
    Message ids, values;
    std::vector<std::vector<size_t>> places;  // by table
  };
  World& world_;
  int64_t first_;
  int64_t serial_ = -1;
  std::map<size_t, RowTerms> gradients_;  // of the last backward, by table
};

}  // namespace tenon::host
