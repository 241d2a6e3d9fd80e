// The block code of one pass: a flat list of kernel calls over slots, and where each slot points.
//
// A pass walks its grid in chunks (tasks), a chunk in tiles. A slot is a pointer that the kernels of a chunk share:
// to a register in the worker's scratch memory, to one element of a scalar, or straight into an input or an output,
// in which case it moves from tile to tile. A tile is a contiguous piece of a FULL tensor: either some whole rows,
// or a piece of one row. In the first case values per row or column are spread over the tile where they meet a FULL
// one; in the second one element stands for the row, and a column vector is simply addressed.
//
// Lists of calls, by when they run: scalar_calls once per run, column_calls once per chunk (a chunk's columns at
// once), row_calls once per block of rows (the block's rows at once), tile_calls once per tile. In a pass `by_row`
// the calls on PER_ROW values stand among the tile's instead, since some of them follow a reduction of the tile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <cstdint>
#include <vector>

#include "pointwise/kernels.h"
#include "pointwise/split_passes.h"

namespace tenon::cpu {

// Elements of a tile: what spreads the cost of a call, and leaves the registers in the first-level cache.
constexpr int64_t kTileElements = 512;
// Tiles where the tensors come from memory: with more, the streams run 1.3 times slower.
constexpr int64_t kTileElementsInMemory = 128;
// Rows from this length on make a tile of their own: values per row and per column then need no spreading.
constexpr int64_t kLongRow = 256;
// Rows of a block whose PER_ROW values are computed together.
constexpr int64_t kBlockRows = 64;
// Columns of a chunk, where it need not hold whole rows.
constexpr int64_t kChunkColumns = 8192;

// What the memory of a slot belongs to.
enum class Home : uint8_t {
  kScratch,   // the worker's, at `offset`
  kShared,    // the call's, at `offset`
  kConstant,  // the binding's list of constants, at `offset`
  kInput,     // input number `index`
  kOutput,    // output number `index`
  kPartial    // partial result number `index` of the chunk's rows
};
// When the slot's pointer is computed anew. It points at row r, column c of the moment: for a chunk its first ones,
// for a block of rows the block's first row, for a tile the tile's first element.
enum class Moves : uint8_t { kNever, kBlock, kTile };

struct Slot {
  Home home = Home::kScratch;
  Moves moves = Moves::kNever;
  bool from_block = false;  // rows count from the block's first one: a register of PER_ROW values
  bool from_chunk = false;  // columns count from the chunk's first one: a register of PER_COLUMN values
  int32_t index = 0;
  int64_t offset = 0;
  int64_t row_bytes = 0;     // from row to row
  int64_t column_bytes = 0;  // from column to column
};

// What `count` and `columns` of a kernel call are.
enum class Span : uint8_t { kOne, kColumns, kRows, kElements };

struct Call {
  Kernel kernel;
  Span span;
  int32_t out, a, b, c;  // slots
};

// How a value reaches an output. A `direct` one is computed where it belongs, unless the request is to add, or an
// input that is read afterwards (`hazards`) is the same memory: then slot `value` is set to `spill` and stored after
// all reads of the tile.
struct Store {
  Kernel write, add;
  Span span;
  int32_t slot;   // in the output
  int32_t value;  // what is stored
  int32_t output;
  bool direct = false;
  int64_t spill = 0;  // offset in the scratch
  std::vector<int32_t> hazards;
};

// A global reduction: partial results per chunk, then one result.
struct Reduction {
  uint16_t operation;
  uint8_t kind;
  uint8_t extent;  // SCALAR or PER_COLUMN
  int32_t result;
  int64_t accumulator;  // offset in the scratch; -1: the partial result itself is the accumulator
  int64_t length;       // elements of the accumulator
  int64_t partial;      // offset in the shared memory
};

struct Code {
  Grid grid = Grid::kScalar;
  bool flat = true;
  bool by_row = false;
  bool whole_rows = false;      // a tile is some rows
  int64_t columns = 0;          // of the grid; unknown (0) where flat
  int64_t tile_rows = 1;        // most rows of a tile
  int64_t tile_columns = 0;     // most columns of a tile
  int64_t stream_bytes = 0;     // of FULL tensors, per element of the grid
  int64_t cost = 1;             // of an element, in simple operations
  int64_t chunk_rows = 0;       // rows of a chunk where they are prescribed: those of a product's tile
  int64_t block_rows = 1;       // rows whose PER_ROW values are computed together
  int64_t most_chunks = 1;      // of the grid at its bounds
  int64_t most_row_chunks = 1;  // of them, above each other
  int64_t scratch_bytes = 0;    // without the pointers, which follow
  std::vector<Slot> slots;
  std::vector<int32_t> block_slots, tile_slots;  // those that move
  std::vector<Call> scalar_calls, column_calls, row_calls, tile_calls;
  std::vector<Store> stores;
  std::vector<Reduction> reductions;
};

// The first bytes of a worker's scratch: where the chunk is, for index kernels and draws.
struct Position {
  int64_t row;  // the block's first
  int64_t chunk_column;
  int64_t tile_column;
  int64_t element;  // the tile's first, counted row by row
  int64_t zero;
  tn_random random;  // of the step
};
constexpr int64_t kPositionBytes = 64;
static_assert(sizeof(Position) <= kPositionBytes);

// A slot that moves, and by how much from one tile to the next.
struct Step {
  int64_t slot;
  int64_t bytes;
};
// What a chunk keeps of its slots behind the registers: pointers, their bases, and steps.
[[nodiscard]] inline int64_t slot_bytes(const Code& code) {
  const size_t steps = code.tile_slots.size() + code.stores.size();
  return static_cast<int64_t>(code.slots.size() * 2 * sizeof(uintptr_t) + steps * sizeof(Step));
}

// The code of all passes with the memory that one call needs.
struct Binding {
  tn_dim rows = {}, columns = {};
  bool wide = false;
  uint32_t inputs_count = 0;
  uint32_t outputs_count = 0;
  std::vector<int32_t> inputs_read;
  std::vector<uint64_t> constants;  // one lane each
  std::vector<Code> passes;
  std::vector<int64_t> results;  // offsets of the global reductions' results in the shared memory
  std::vector<uint8_t> result_extents;
  int64_t shared_bytes = 0;
  int64_t scratch_bytes = 0;  // per worker
  int32_t workers = 1;        // with scratch memory of their own; more than these share it by turns
};

// Has every call a kernel? A validated program of this version has; a newer host may know more of them.
[[nodiscard]] bool is_complete(const Binding& binding);
[[nodiscard]] inline uint64_t workspace_bytes(const Binding& binding) {
  return static_cast<uint64_t>(binding.shared_bytes + binding.workers * binding.scratch_bytes);
}

// Rows or columns of a chunk follow from the grid alone, never from the number of workers.
struct Walk {
  int64_t rows, columns;              // of the grid; a flat one is one row
  int64_t chunk_rows, chunk_columns;  // of a chunk
  int64_t row_chunks, column_chunks;
  int64_t tile_columns;
};
// Chunks beside each other, in a grid that is not flat.
[[nodiscard]] int64_t column_chunks(const Code& code);
// Sets everything in `code` that describes tiles and chunks; `by_column`: the pass reduces to PER_COLUMN. chunk_rows:
// about how many rows a chunk of a pass over the whole grid must have; 0: as is best.
void choose_tiles(const tn_pointwise_site& site, const Pass& pass, bool by_column, int64_t chunk_rows, Code& code);
[[nodiscard]] Walk walk(const Code& code, int64_t rows, int64_t columns);

// Throws nothing but std::bad_alloc and std::length_error. `missing` is set to the first element type that is not
// offered, when there is one.
// chunk_rows: as above.
[[nodiscard]] Binding generate(const tn_pointwise_site& site, Isa isa, tn_dtype* missing, int64_t chunk_rows = 0);

}  // namespace tenon::cpu
