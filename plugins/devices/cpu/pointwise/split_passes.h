// A pointwise program cut into passes over its grid.
//
// A reduction whose result is shared by many rows ("global": to PER_COLUMN or SCALAR) is complete only when the
// whole grid was seen, so values are ordered in phases by how many global reductions lie behind them, and a phase
// is one or a few passes. A later pass computes what it needs again from the program's inputs: memory traffic costs
// more than arithmetic. Reductions along a row (FULL to PER_ROW) stay inside a pass.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <cstdint>
#include <vector>

namespace tenon::cpu {

// Operations of a pass: the opcodes of tenon/program.h (without STOP and INPUT and those listed here) and these.
enum Operation : uint16_t {
  kLoad = 1,      // program input number `index`
  kConstant = 2,  // `number`
  kIndex = 3,     // position along the axis of the node's extent
  // TN_OP_UNIFORM keeps its number; `index` is the draw.
  kResult = 4,      // global reduction number `index`, of an earlier phase
  kCopy = 99,       // a, with the node's extent
  kMulAdd = 100,    // a * b + c, rounded once where the processor can
  kMulSub = 101,    // a * b - c
  kNegMulAdd = 102  // c - a * b
};

// How many of a, b, c an operation reads.
[[nodiscard]] int operands_count(uint16_t operation);

// One value of a pass; operands are numbers of earlier nodes.
struct Node {
  uint16_t operation = 0;
  uint8_t kind = TN_FLOAT;
  uint8_t extent = TN_SCALAR;
  int32_t operands[3] = {-1, -1, -1};
  int32_t index = -1;
  double number = 0;
};

// What a pass leaves behind: program outputs and global reductions.
struct OutputSink {
  int32_t node;
  int32_t output;
};
struct ReductionSink {
  int32_t node;
  uint16_t operation;  // TN_OP_REDUCE_*
  int32_t result;
};

enum class Grid : uint8_t { kScalar, kColumns, kRows, kFull };

// In a pass over columns or rows alone, and in a flat one, the grid is one row and the extents are SCALAR and FULL.
struct Pass {
  Grid grid = Grid::kScalar;
  bool flat = true;     // rows and columns do not matter: one row of all elements
  bool by_row = false;  // rows are reduced, or PER_ROW values leave: a tile holds whole rows
  std::vector<Node> nodes;
  std::vector<OutputSink> outputs;
  std::vector<ReductionSink> reductions;
};

struct Result {
  uint8_t extent;  // SCALAR or PER_COLUMN
  uint8_t kind;
};

// The passes in the order in which they run. An output is written in no pass that comes before one that reads an
// input of the same extent, because the two may share memory.
struct Schedule {
  std::vector<Pass> passes;
  std::vector<Result> results;
};

[[nodiscard]] Schedule schedule(const tn_pointwise_site& site);

}  // namespace tenon::cpu
