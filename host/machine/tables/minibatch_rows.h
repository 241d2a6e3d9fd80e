// The rows of tables that a process reads of a minibatch. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "host/compile/lowering/lowering.h"
#include "host/machine/tables/table_reads.h"

namespace tenon::host {

using namespace core;

// Returns the ids in the array of a data layer of ids, in the order in which a machine copies them.
[[nodiscard]] std::vector<int64_t> ids_of(const Feed& feed, const ArrayView& array);

// Rows of one table.
struct TableRows {
  std::vector<int64_t> ids;   // ascending, without duplicates
  std::vector<float> values;  // [ids, width]

  // Returns the place of a row that is here.
  [[nodiscard]] int64_t place(int64_t id) const;
};

// The rows of each table that a process reads of a minibatch, by number in CompiledModel::tables: ascending, without
// duplicates. Caches have them in this order, so that all shards of the process have one place for a row.
using TableIds = std::vector<std::vector<int64_t>>;

// Returns in `ids` the rows of which arrays have the ids. feeds: those of the arrays. Throws TN_BAD_DATA for an id
// beyond its table.
void collect_ids(const std::vector<MachineTable>& tables, const std::vector<Feed>& feeds,
                 const std::vector<ArrayView>& arrays, TableIds& ids);

}  // namespace tenon::host
