// The reads of tables in the graph of a machine that has only a few of their rows. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "core/parameter_set.h"
#include "host/compile/lowering/lowering.h"

namespace tenon::host {

using namespace core;

struct MachineOptions;

// Ids of a data layer by which gathers read a table: `places` is an external value that has, for each of them, the
// place of its row in the cache of the table.
struct TableRead {
  size_t feed;  // in Lowered::feeds
  ValueId places;
};

// A table of a machine. Its `stored` value is a cache of rows, whose bytes follow from the minibatch.
struct MachineTable {
  size_t entry, owned;  // numbers in the set, and in that of the rows which this process owns
  ValueId stored;
  int64_t height, width;  // rows of the table, elements of a row
  std::vector<TableRead> reads;
};

// Checks that the tables of the set are read by gathers alone, with ids of data layers, and have row-sparse gradients:
// throws TN_UNSUPPORTED naming the table and the layer. Lets the gathers of those whose rows lie with their owners read
// caches. Call before differentiation, whose gradients then have the same places as ids.
[[nodiscard]] std::vector<MachineTable> read_caches(Graph& graph, const Lowered& lowered, const ParameterSet& set,
                                                    const MachineOptions& options);

}  // namespace tenon::host
