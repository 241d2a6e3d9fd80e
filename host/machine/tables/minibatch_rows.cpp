// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/minibatch_rows.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/error.h"
#include "host/machine/widening.h"

namespace tenon::host {

std::vector<int64_t> ids_of(const Feed& feed, const ArrayView& array) {
  if (feed.weights != kNoValue) return {array.ids, array.ids + array.offsets[0][array.shape[0]]};
  std::vector<int64_t> ids(
      static_cast<size_t>(std::accumulate(array.shape.begin(), array.shape.end(), int64_t{1}, std::multiplies<>())));
  if (!ids.empty()) copy_widened(array, TN_I64, reinterpret_cast<std::byte*>(ids.data()));
  return ids;
}

int64_t TableRows::place(int64_t id) const { return std::lower_bound(ids.begin(), ids.end(), id) - ids.begin(); }

void collect_ids(const std::vector<MachineTable>& tables, const std::vector<Feed>& feeds,
                 const std::vector<ArrayView>& arrays, TableIds& ids) {
  ids.resize(tables.size());
  for (size_t i = 0; i < tables.size(); ++i) {
    std::vector<int64_t>& rows = ids[i];
    rows.clear();
    for (const TableRead& read : tables[i].reads) {
      const Feed& feed = feeds[read.feed];
      for (const int64_t id : ids_of(feed, arrays[read.feed])) {
        if (id < 0 || id >= tables[i].height)
          fail(TN_BAD_DATA, SubjectName{feed.name}, "data layer \"", feed.name, "\": id ", id,
               " of the minibatch; the table that it is a row of has ", tables[i].height, " rows");
        rows.push_back(id);
      }
    }
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  }
}

}  // namespace tenon::host
