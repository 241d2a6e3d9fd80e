// A pointwise program cut into kernels that run one after another.
//
// A reduction whose result many rows share ("global": to SCALAR or PER_COLUMN) is complete only after a whole kernel
// has run. So it takes two kernels: one writes partial results, a later one folds them in a fixed order and stores the
// result. The depth of a value is the number of global reductions on the longest way to it. Reductions along a row stay
// inside a kernel that gives each row to a warp or a block, unless a reduction to PER_COLUMN reads them: its kernel
// walks down the columns, so the results of the rows are stored first. A kernel computes all other values that it needs
// again from the program's inputs, since memory traffic costs more than arithmetic.
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

// The grid of a kernel.
enum class Grid : uint8_t {
  kElements,  // all elements, a thread each
  kRows,      // rows, a group of threads each: a warp or a block
  kStrips,    // pieces of columns, for reductions to PER_COLUMN
  kRowVector,
  kColumnVector,
  kOne  // SCALAR values alone
};

enum class BufferShape : uint8_t {
  kOne,      // [1]
  kRows,     // [rows]
  kColumns,  // [columns]
  kParts,    // [parts of the kernel that writes it]
  kStrips    // [strips, columns]
};

// A part of the workspace: float or int values.
struct Buffer {
  BufferShape shape;
  Grid maker;  // kParts: the grid of the kernel that writes it, which determines the number of parts
};

// One value of the program in normal form.
struct Node : pointwise::Node {
  int32_t depth = 0;  // global reductions on the longest way to it
  bool live = false;
  bool global = false;   // a reduction to SCALAR or PER_COLUMN
  int32_t kept = -1;     // buffer of a reduction's result; -1: it is not stored
  int32_t partial = -1;  // buffer of a global reduction's partial results
};

// One kernel. The lists are numbers of nodes; `outputs` has numbers of program outputs.
struct Kernel {
  Grid grid = Grid::kOne;
  int32_t depth = 0;              // depth of the deepest values that it can compute
  std::vector<int32_t> partials;  // global reductions whose partial results it writes
  std::vector<int32_t> keeps;     // reductions that it completes and stores in Node::kept
  std::vector<int32_t> outputs;   // program outputs that it writes
};

struct Plan {
  std::vector<Node> nodes;
  std::vector<Buffer> buffers;
  std::vector<int32_t> outputs;  // node of each program output
  std::vector<Kernel> kernels;   // in the order in which they run

  [[nodiscard]] const Node& node(int32_t value) const { return nodes[static_cast<size_t>(value)]; }
  // Whether `kernel` reads the value (or its partial results) from memory instead of computing it.
  [[nodiscard]] bool is_leaf(const Kernel& kernel, int32_t value) const;
  // [nodes] the values that `kernel` reads or computes, leaves included.
  [[nodiscard]] std::vector<bool> closure(const Kernel& kernel) const;
};

[[nodiscard]] Plan make_plan(const tn_pointwise_site& site);

}  // namespace tenon::cuda
