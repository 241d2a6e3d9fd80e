// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/table_reader.h"

#include <algorithm>

#include "core/error.h"

namespace tenon::host {

std::span<const float> TableReader::rows(const ParameterEntry& table, int64_t first, int64_t count) const {
  return owners_.values(set_.owned()->find(table.name), first, count);
}

void TableReader::read(const ParameterEntry& table, int64_t first, int64_t count, float* to) {
  Request request = {static_cast<int64_t>(set_.index(table.name)), first, count};
  team_.broadcast(std::as_writable_bytes(std::span(&request, 1)));
  const auto width = static_cast<int64_t>(element_bytes({TN_F32, table.shape}) / sizeof(float)) / table.shape[0];
  std::vector<std::vector<float>> received(static_cast<size_t>(team_.processes()));
  std::vector<Team::Incoming> incoming;
  for (int64_t process = 0; process < team_.processes(); ++process) {
    if (process == team_.rank()) continue;
    const TableBlocks blocks = owned_blocks(&team_, process);
    std::vector<float>& part = received[static_cast<size_t>(process)];
    part.resize(static_cast<size_t>((blocks.rows(first + count) - blocks.rows(first)) * width));
    incoming.push_back({process, part.data(), part.size() * sizeof(float)});
  }
  team_.exchange({}, incoming);
  std::vector<const float*> next;  // by process: the row that comes next
  for (const std::vector<float>& part : received) next.push_back(part.data());
  next[static_cast<size_t>(team_.rank())] = rows(table, first, count).data();
  for (int64_t row = first; row < first + count; ++row) {
    const float*& from = next[static_cast<size_t>(owners_.owner(row))];
    to = std::copy_n(from, width, to);
    from += width;
  }
}

void TableReader::end(bool failed) {
  Request request = {failed ? kFailed : kDone, 0, 0};
  team_.broadcast(std::as_writable_bytes(std::span(&request, 1)));
}

void TableReader::serve() {
  for (;;) {
    Request request = {};
    team_.broadcast(std::as_writable_bytes(std::span(&request, 1)));
    if (request.table == kDone) return;
    if (request.table == kFailed) fail(TN_IO, "process 0 could not write the model");
    const auto& entries = set_.entries();
    const auto number = static_cast<size_t>(request.table);
    if (number >= entries.size() || !entries[number].table || request.first < 0 || request.count < 0 ||
        request.first > entries[number].shape[0] - request.count)
      fail(TN_BAD_DATA, "process 0 reads ", request.count, " rows from row ", request.first, " of entry ",
           request.table, ", which is not a table with them");
    const std::span<const float> values = rows(entries[number], request.first, request.count);
    const Team::Outgoing outgoing = {0, values.data(), values.size_bytes()};
    team_.exchange({&outgoing, 1}, {});
  }
}

}  // namespace tenon::host
