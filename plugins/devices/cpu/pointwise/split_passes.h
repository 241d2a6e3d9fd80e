// A pointwise program cut into passes over its grid.
//
// A reduction whose result is shared by many rows ("global": to PER_COLUMN or SCALAR) is complete only after a pass
// over the whole grid. So values are ordered in phases by their depth, the number of global reductions on the longest
// way to them, and a phase is one or a few passes. A later pass computes the values that it needs again from the
// program's inputs, since memory traffic costs more than arithmetic. Reductions along a row (FULL to PER_ROW) stay
// inside a pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>
#include <vector>

#include "normal_form.h"

namespace tenon::cpu {

// Operations of a pass: those of the normal form except STOP, and these.
using enum pointwise::Operation;
enum PassOperation : uint16_t {
  kResult = 98,     // global reduction number `index`, of an earlier phase
  kMulAdd = 100,    // a * b + c, rounded once where the processor can
  kMulSub = 101,    // a * b - c
  kNegMulAdd = 102  // c - a * b
};

// One value of a pass; operands are numbers of earlier nodes.
using pointwise::Node;

// Results of a pass: program outputs and global reductions.
struct OutputSink {
  int32_t node;
  int32_t output;  // number of the program's output
};
struct ReductionSink {
  int32_t node;
  uint16_t operation;  // TN_OP_REDUCE_*
  int32_t result;      // number in Schedule::results
};

enum class Grid : uint8_t { kScalar, kColumns, kRows, kFull };

// In a pass over columns or rows alone, and in a flat one, the grid is one row and the extents are SCALAR and FULL.
struct Pass {
  Grid grid = Grid::kScalar;
  bool flat = true;     // rows and columns do not matter: one row of all elements
  bool by_row = false;  // rows are reduced: a tile holds whole rows
  std::vector<Node> nodes;
  std::vector<OutputSink> outputs;
  std::vector<ReductionSink> reductions;
};

// The result of a global reduction.
struct Result {
  uint8_t extent;  // SCALAR or PER_COLUMN
  uint8_t kind;
};

// The passes in the order in which they run. An output is written by the last pass that reads inputs of its extent, or
// by a later one, because it may share memory with such an input.
struct Schedule {
  std::vector<Pass> passes;
  std::vector<Result> results;
};

[[nodiscard]] Schedule schedule(const tn_pointwise_site& site);
// Returns how many passes of the schedule are over the full grid.
[[nodiscard]] size_t count_full_passes(const tn_pointwise_site& site);

}  // namespace tenon::cpu
