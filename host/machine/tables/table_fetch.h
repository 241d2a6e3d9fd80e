// The rows of tables that a process reads, brought by their owners. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "host/machine/tables/messages.h"
#include "host/machine/tables/minibatch_rows.h"
#include "host/machine/tables/table_owners.h"

namespace tenon::host {

using namespace core;

// Asks for the rows of one minibatch after the other, and fetches them in this order. If those of the next minibatch
// are asked for before those of this one are fetched, this fetch also begins to send the rows that no process reads of
// this minibatch: its update does not change them. The others follow when they are fetched. So the values are the same,
// and those that are early travel while a minibatch is computed. All processes make the same calls.
class TableFetch : base::NotCopied {
 public:
  // Of rows that are sent before the update in between.
  static constexpr uint32_t kEarlyChannel = Team::kMostChannel;

  // Borrows the owners.
  TableFetch(const TableOwners& owners, std::vector<MachineTable> tables);

  // Asks for the rows of a minibatch; of at most two that are not fetched. ids: by number in `tables`; takes them, and
  // leaves other memory.
  void ask(TableIds& ids);
  [[nodiscard]] bool is_asked() const { return asked_ > fetched_; }
  // Brings the rows of the first minibatch that was asked for and is not fetched.
  void fetch();
  // After a fetch: lets the next one bring all rows, since values have changed otherwise than by an update.
  void recall();
  // Those of the last fetch, until the second call of ask() after it.
  [[nodiscard]] const std::vector<TableRows>& rows() const { return requests_[(fetched_ - 1) % 2].rows; }

 private:
  // The rows that one process asks another one for.
  struct Share {
    // By table. At the process that asks: where they are in its TableRows; at the other: their places as owned rows.
    std::vector<std::vector<int64_t>> rows;
    std::vector<uint8_t> early;  // of each row, of one table after the other: whether it is sent early

    // Calls work(table, row) for the rows that are sent early, or for the others.
    template <typename Work>
    void each(bool is_early, const Work& work) const;
  };
  struct Request {
    explicit Request(const TableOwners& owners);
    std::vector<TableRows> rows;         // of this process
    Messages ids;                        // of the rows
    std::vector<Share> asked, answered;  // of and by each process, by this one
  };

  [[nodiscard]] Request& request(uint64_t number) { return requests_[number % 2]; }
  void divide(Request& request);
  void read(Request& request);
  void find_early(const Request& now, Request& next);
  void take_early(Request& now);
  void exchange_late(Request& now, const Request* next);
  void send_early(const Request& next);
  [[nodiscard]] uint64_t bytes(const Share& share, bool is_early) const;
  [[nodiscard]] uint64_t early_bytes(const Share& share) const { return share.early.size() + bytes(share, true); }
  void write(const Share& share, bool is_early, MessageWriter& to) const;
  void copy(const Share& share, bool is_early, MessageReader& from, Request& to) const;

  const TableOwners& owners_;
  const std::vector<MachineTable> tables_;
  const size_t processes_;
  std::array<Request, 2> requests_;
  uint64_t asked_ = 0, fetched_ = 0;  // minibatches
  Messages late_, early_;
  std::vector<uint64_t> early_bytes_;     // by process, of the early rows that come from it
  bool is_early_ = false;                 // whether rows of the next fetch were sent early
  std::vector<std::vector<bool>> reads_;  // scratch, by table: for each owned row, whether a process reads it
  std::vector<int64_t> ids_;              // scratch
};

}  // namespace tenon::host
