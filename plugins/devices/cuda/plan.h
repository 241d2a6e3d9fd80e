// A pointwise program cut into kernels that run one after another.
//
// A reduction whose result many rows share ("global": to SCALAR or PER_COLUMN) is complete only when a whole kernel
// has run. So such a reduction is two steps: a kernel leaves partial results, a later one folds them in a fixed order
// and keeps the result. A value's depth is the number of global reductions on the longest way to it. Reductions along
// a row stay inside a kernel that gives each row to a warp or a block, unless a reduction to PER_COLUMN reads them:
// its kernel walks down the columns, so it finds them kept in memory. What else a kernel needs it computes again from
// the program's inputs, since memory traffic costs more than arithmetic.
//
// An output may share memory with an input of its extent. Outputs are therefore written by the last kernel that reads
// inputs of that extent, or by one after it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>
#include <vector>

#include "normal_form.h"

namespace tenon::cuda {

using enum pointwise::Operation;

// What a kernel walks over.
enum class Grid : uint8_t {
  kElements,  // all elements, a thread each
  kRows,      // rows, a group of threads each: a warp or a block
  kStrips,    // pieces of columns, for reductions to PER_COLUMN
  kRowVector,
  kColumnVector,
  kOne  // nothing: SCALAR values alone
};

enum class SlotShape : uint8_t {
  kOne,      // one element
  kRows,     // one per row
  kColumns,  // one per column
  kParts,    // one per part of the kernel that made it
  kStrips    // one per strip and column
};

// A piece of workspace of float or int values.
struct Slot {
  SlotShape shape;
  Grid maker;  // of kParts: what kind of kernel makes them, from which their number follows
};

// One value of the program in normal form.
struct Node : pointwise::Node {
  int32_t depth = 0;  // global reductions on the longest way to it
  bool live = false;
  bool global = false;   // a reduction to SCALAR or PER_COLUMN
  int32_t kept = -1;     // slot of a reduction's result, once it is in memory
  int32_t partial = -1;  // slot of a global reduction's partial results
};

// Numbers of nodes, but for outputs.
struct Kernel {
  Grid grid = Grid::kOne;
  int32_t depth = 0;              // the deepest values that it can compute
  std::vector<int32_t> partials;  // global reductions of which it makes the partial results
  std::vector<int32_t> keeps;     // reductions that it completes and keeps
  std::vector<int32_t> outputs;   // program outputs that it writes
};

struct Plan {
  std::vector<Node> nodes;
  std::vector<Slot> slots;
  std::vector<int32_t> outputs;  // node of each program output
  std::vector<Kernel> kernels;   // in the order in which they run

  [[nodiscard]] const Node& node(int32_t value) const { return nodes[static_cast<size_t>(value)]; }
  // Whether `kernel` finds the value in memory.
  [[nodiscard]] bool is_leaf(const Kernel& kernel, int32_t value) const;
  // What `kernel` needs, leaves included: one flag per node.
  [[nodiscard]] std::vector<bool> closure(const Kernel& kernel) const;
};

[[nodiscard]] Plan make_plan(const tn_pointwise_site& site);

}  // namespace tenon::cuda
