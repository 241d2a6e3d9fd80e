// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/table_fetch.h"

#include <algorithm>

#include "core/error.h"

namespace tenon::host {

template <typename Work>
void TableFetch::Share::each(bool is_early, const Work& work) const {
  auto flag = early.begin();
  for (size_t table = 0; table < rows.size(); ++table)
    for (const int64_t row : rows[table])
      if ((*flag++ != 0) == is_early) work(table, row);
}

TableFetch::Request::Request(const TableOwners& owners)
    : ids(owners.team()),
      asked(static_cast<size_t>(owners.processes())),
      answered(static_cast<size_t>(owners.processes())) {}

TableFetch::TableFetch(const TableOwners& owners, std::vector<MachineTable> tables)
    : owners_(owners),
      tables_(std::move(tables)),
      processes_(static_cast<size_t>(owners.processes())),
      requests_{Request(owners), Request(owners)},
      late_(owners.team()),
      early_(owners.team()),
      early_bytes_(processes_) {}

void TableFetch::ask(TableIds& ids) {
  Request& request = this->request(asked_++);
  request.rows.resize(tables_.size());
  for (size_t i = 0; i < tables_.size(); ++i) request.rows[i].ids.swap(ids[i]);
  divide(request);
  uint64_t most = 0;  // bytes of a message
  for (const MachineTable& table : tables_) most += (static_cast<uint64_t>(table.height) + 1) * sizeof(int64_t);
  request.ids.exchange(most);
  read(request);
  for (std::vector<Share>* const shares : {&request.asked, &request.answered})
    for (Share& share : *shares) {
      size_t count = 0;
      for (const std::vector<int64_t>& rows : share.rows) count += rows.size();
      share.early.assign(count, 0);
    }
}

// Collects for each owner the ids of its rows, of one table after another.
void TableFetch::divide(Request& request) {
  const std::vector<TableRows>& rows = request.rows;
  for (Share& share : request.asked) {
    share.rows.resize(rows.size());
    for (std::vector<int64_t>& places : share.rows) places.clear();
  }
  for (size_t table = 0; table < rows.size(); ++table)
    for (size_t i = 0; i < rows[table].ids.size(); ++i) {
      Share& share = request.asked[static_cast<size_t>(owners_.owner(rows[table].ids[i]))];
      share.rows[table].push_back(static_cast<int64_t>(i));
    }
  for (size_t process = 0; process < processes_; ++process) {
    const Share& share = request.asked[process];
    uint64_t numbers = share.rows.size();
    for (const std::vector<int64_t>& places : share.rows) numbers += places.size();
    MessageWriter writer(request.ids.to(static_cast<int64_t>(process)), numbers * sizeof(int64_t));
    for (size_t table = 0; table < rows.size(); ++table) {
      ids_.assign(1, static_cast<int64_t>(share.rows[table].size()));
      for (const int64_t place : share.rows[table]) ids_.push_back(rows[table].ids[static_cast<size_t>(place)]);
      writer.write(std::span<const int64_t>(ids_));
    }
  }
}

// Takes the places of the rows that each process asks this one for.
void TableFetch::read(Request& request) {
  const TableBlocks& blocks = owners_.blocks();
  for (size_t process = 0; process < processes_; ++process) {
    const auto number = static_cast<int64_t>(process);
    MessageReader reader(request.ids.from(number), number);
    std::vector<std::vector<int64_t>>& rows = request.answered[process].rows;
    rows.resize(tables_.size());
    for (size_t i = 0; i < tables_.size(); ++i) {
      reader.read(rows[i], reader.length(owners_.owned().entries()[tables_[i].owned].shape[0]));
      for (int64_t& row : rows[i]) {
        owners_.require_owned(tables_[i], row, number, "asks for");
        row = blocks.place(row);
      }
    }
  }
}

void TableFetch::fetch() {
  Request& now = request(fetched_);
  Request* const next = asked_ - fetched_ > 1 ? &request(fetched_ + 1) : nullptr;
  ++fetched_;
  for (size_t i = 0; i < tables_.size(); ++i)
    now.rows[i].values.resize(now.rows[i].ids.size() * static_cast<size_t>(tables_[i].width));
  if (is_early_) take_early(now);
  if (next != nullptr) find_early(now, *next);
  exchange_late(now, next);
  if (next != nullptr) send_early(*next);
  is_early_ = next != nullptr;
}

void TableFetch::recall() {
  if (!is_early_) return;
  early_.wait();
  is_early_ = false;
  for (Share& share : request(fetched_).answered) std::fill(share.early.begin(), share.early.end(), 0);
}

// An update changes rows that a process has read of the minibatch, and no others: only these have gradients.
void TableFetch::find_early(const Request& now, Request& next) {
  reads_.resize(tables_.size());
  for (size_t i = 0; i < tables_.size(); ++i)
    reads_[i].resize(static_cast<size_t>(owners_.owned().entries()[tables_[i].owned].shape[0]));
  const auto mark = [&](bool is_read) {
    for (const Share& share : now.answered)
      for (size_t i = 0; i < tables_.size(); ++i)
        for (const int64_t row : share.rows[i]) reads_[i][static_cast<size_t>(row)] = is_read;
  };
  mark(true);
  for (Share& share : next.answered) {
    auto flag = share.early.begin();
    for (size_t i = 0; i < tables_.size(); ++i)
      for (const int64_t row : share.rows[i]) *flag++ = reads_[i][static_cast<size_t>(row)] ? 0 : 1;
  }
  mark(false);
}

// A message of early rows begins with the flags of all rows of its share.
void TableFetch::send_early(const Request& next) {
  for (size_t process = 0; process < processes_; ++process) {
    const Share& share = next.answered[process];
    MessageWriter writer(early_.to(static_cast<int64_t>(process)), early_bytes(share));
    writer.write(std::span<const uint8_t>(share.early));
    write(share, true, writer);
  }
  early_.begin(early_bytes_, kEarlyChannel);
}

void TableFetch::take_early(Request& now) {
  early_.wait();
  for (size_t process = 0; process < processes_; ++process) {
    const auto number = static_cast<int64_t>(process);
    Share& share = now.asked[process];
    MessageReader reader(early_.from(number), number);
    const auto* const flags = reinterpret_cast<const uint8_t*>(reader.bytes(share.early.size()));
    std::copy_n(flags, share.early.size(), share.early.begin());
    copy(share, true, reader, now);
  }
}

// Sends the other rows, which an update has changed, and before them, to a process that reads rows of the next
// minibatch, how many bytes of these are early.
void TableFetch::exchange_late(Request& now, const Request* next) {
  const auto announces = [&](size_t process) { return next != nullptr && !next->asked[process].early.empty(); };
  std::vector<uint64_t> coming(processes_);
  for (size_t process = 0; process < processes_; ++process) {
    const uint64_t early = next == nullptr ? 0 : early_bytes(next->answered[process]);
    const std::span<const uint64_t> announced(&early, early > 0 ? 1 : 0);
    const Share& share = now.answered[process];
    MessageWriter writer(late_.to(static_cast<int64_t>(process)), announced.size_bytes() + bytes(share, false));
    writer.write(announced);
    write(share, false, writer);
    coming[process] = (announces(process) ? sizeof early : 0) + bytes(now.asked[process], false);
  }
  late_.exchange(coming);
  for (size_t process = 0; process < processes_; ++process) {
    const auto number = static_cast<int64_t>(process);
    MessageReader reader(late_.from(number), number);
    uint64_t& early = early_bytes_[process] = 0;
    if (announces(process)) std::memcpy(&early, reader.bytes(sizeof early), sizeof early);
    copy(now.asked[process], false, reader, now);
    if (next == nullptr) continue;
    const uint64_t most = next->asked[process].early.size() + bytes(next->asked[process], false);  // no flag is set yet
    if (early > most) fail(TN_BAD_DATA, "process ", process, " announces ", early, " bytes; expected at most ", most);
  }
}

uint64_t TableFetch::bytes(const Share& share, bool is_early) const {
  uint64_t elements = 0;
  auto flag = share.early.begin();
  for (size_t table = 0; table < share.rows.size(); ++table) {
    const auto rows = static_cast<int64_t>(share.rows[table].size());
    const int64_t late = std::count(flag, flag + rows, uint8_t{0});
    elements += static_cast<uint64_t>((is_early ? rows - late : late) * tables_[table].width);
    flag += rows;
  }
  return elements * sizeof(float);
}

void TableFetch::write(const Share& share, bool is_early, MessageWriter& to) const {
  share.each(is_early, [&](size_t table, int64_t row) {
    to.write(std::span(owners_.owned().row(tables_[table].owned, row), static_cast<size_t>(tables_[table].width)));
  });
}

void TableFetch::copy(const Share& share, bool is_early, MessageReader& from, Request& to) const {
  share.each(is_early, [&](size_t table, int64_t row) {
    const auto width = static_cast<uint64_t>(tables_[table].width);
    std::memcpy(to.rows[table].values.data() + static_cast<uint64_t>(row) * width, from.bytes(width * sizeof(float)),
                width * sizeof(float));
  });
}

}  // namespace tenon::host
