// How much a node does, to compare the time of its call with what the machine can do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/graph/graph.h"

namespace tenon::core {

struct Work {
  // Of products (gemm, conv): two per multiply-add. Of programs and epilogues: one per instruction and element. Of all
  // others 0: they are bound by their bytes.
  double operations = 0;
  // Read and written once each. Of a table of which rows are gathered or scattered: those rows. A row-sparse gradient
  // counts as the contributions that it sums.
  double bytes = 0;
};

// symbols[symbol]: the sizes; in a loop those of the step.
[[nodiscard]] Work work_of(const Graph& graph, const Node& node, const int64_t* symbols);

}  // namespace tenon::core
