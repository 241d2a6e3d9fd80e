// The block code of one pass: a flat list of kernel calls over cursors, and where each cursor points.
//
// A pass walks its grid in chunks (tasks), a chunk in blocks of rows, a block in tiles. A cursor is a pointer that the
// kernels of a chunk share: to a register in the worker's scratch memory, to a scalar, or into an input or output,
// where it moves from tile to tile. A tile is a contiguous part of a FULL tensor: either several whole rows, or a part
// of one row. In the first case PER_ROW and PER_COLUMN operands of a FULL operation are spread over the tile; in the
// second one element is the operand for the row, and a column vector is read at the tile's columns.
//
// Lists of calls, by when they run: scalar_calls once per run, column_calls once per chunk (for all its columns),
// row_calls once per block (for all its rows), tile_calls once per tile. In a pass with `by_row` the calls on PER_ROW
// values are tile_calls, since some of them follow a reduction of the tile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <cstdint>
#include <vector>

#include "pointwise/kernels.h"
#include "pointwise/shared_cache.h"
#include "pointwise/split_passes.h"

namespace tenon::cpu {

// Elements of a tile: enough to make the cost of a call small, few enough for the registers to stay in the first-level
// cache.
constexpr int64_t kTileElements = 512;
// Elements of a tile if the tensors do not fit into the cache: larger tiles are 1.3 times slower there.
constexpr int64_t kTileElementsInMemory = 128;
// A row of at least this many columns is a tile of its own: PER_ROW and PER_COLUMN values then need no spreading.
constexpr int64_t kLongRow = 256;
// Rows of a block: their PER_ROW values are computed together.
constexpr int64_t kBlockRows = 64;
// Most columns of a chunk that does not hold whole rows.
constexpr int64_t kChunkColumns = 8192;

// The memory that a cursor points into. `offset` is in bytes.
enum class Home : uint8_t {
  kScratch,   // the worker's scratch, at `offset`
  kShared,    // the call's shared memory, at `offset`
  kConstant,  // the binding's list of constants, at `offset`
  kInput,     // input number `index`
  kOutput,    // output number `index`
  kPartial    // partial result number `index` of the chunk's rows
};
// When the pointer of a cursor is set: once for a chunk, for each block of rows, or for each tile. It points at the
// first row and column of the chunk, block or tile.
enum class Moves : uint8_t { kNever, kBlock, kTile };

// Element (row, column) of the grid is at row * row_bytes + column * column_bytes from the cursor's base.
struct Cursor {
  Home home = Home::kScratch;
  Moves moves = Moves::kNever;
  bool from_block = false;  // rows count from the block's first one: a register of PER_ROW values
  bool from_chunk = false;  // columns count from the chunk's first one: a register of PER_COLUMN values
  int32_t index = 0;
  int32_t memory = -1;  // number of its memory in the table of a run (number_memories); -1: of each worker or chunk
  int64_t offset = 0;
  int64_t row_bytes = 0;     // 0: the same element for all rows
  int64_t column_bytes = 0;  // 0: the same element for all columns
};

// The argument `count` of a kernel call: 1, or the columns, rows or elements of the chunk, block or tile.
enum class Span : uint8_t { kOne, kColumns, kRows, kElements };

// One kernel call; its operands are numbers of cursors.
struct Call {
  Kernel kernel;
  Span span;
  int32_t out, a, b, c;
  KernelKey key = {};  // of an arithmetic_kernel or math_kernel
};

// Writes a value to a program output at the end of a tile. A `direct` value is computed in the output's own memory
// instead, unless the request is ADD, or the output is the same memory as an input that the tile reads later
// (`hazards`).
struct Store {
  Kernel write, add;
  Span span;
  int32_t cursor;  // into the output
  int32_t value;   // cursor of the value
  int32_t output;  // number of the program's output
  bool direct = false;
  std::vector<int32_t> hazards;  // numbers of inputs
};

// A global reduction: partial results of the chunks, then one result. Offsets are in bytes.
struct Reduction {
  uint16_t operation;
  uint8_t kind;
  uint8_t extent;       // SCALAR or PER_COLUMN
  int32_t result;       // number of the result: Binding::results
  int64_t accumulator;  // offset in the scratch; -1: the partial result itself is the accumulator
  int64_t length;       // elements of the accumulator
  int64_t partial;      // offset in the shared memory: [chunks] of 8 bytes, or [row chunks, columns] lanes
};

// The chunks of the first pass over the whole grid, where another primitive computes the rows of a chunk just before.
struct Chunks {
  int64_t rows = 0;        // of a chunk at least; 0: chosen by cost
  bool exact = false;      // a chunk is `rows` rows, or several times as many
  bool is_eighth = false;  // at least an eighth of all rows, from 16 to 96
};

// The code of one pass.
struct Code {
  Grid grid = Grid::kScalar;
  bool flat = true;
  bool by_row = false;
  bool whole_rows = false;      // a tile is one or more whole rows
  int64_t columns = 0;          // of the grid; 0 (unknown) if flat
  int64_t tile_rows = 1;        // most rows of a tile
  int64_t tile_columns = 0;     // most columns of a tile
  int64_t stream_bytes = 0;     // of FULL tensors, per element of the grid
  int64_t cost = 1;             // of an element, in simple operations
  Chunks chunks;                // chunks.rows above 0: they are prescribed
  int64_t block_rows = 1;       // rows whose PER_ROW values are computed together
  int64_t most_chunks = 1;      // of the grid at its bounds
  int64_t most_row_chunks = 1;  // most chunks along the rows
  int64_t partial_chunks = 0;   // above 0: so many row chunks at most have partial results, by column
  int64_t scratch_bytes = 0;    // of the registers; the cursors' pointers follow: cursor_bytes
  int64_t shared_bytes = 0;     // end of the shared memory that the pass uses
  std::vector<Cursor> cursors;
  std::vector<int32_t> block_cursors, tile_cursors;  // numbers of the cursors that move
  std::vector<Call> scalar_calls, column_calls, row_calls, tile_calls;
  std::vector<Store> stores;
  std::vector<Reduction> reductions;

  // Lists in block_cursors and tile_cursors the cursors that move.
  void find_moving();
  // Sets Cursor::memory. A table has the memories of kShared and kConstant, then those of the inputs and outputs.
  void number_memories(uint32_t inputs_count);
};

// The first bytes of a worker's scratch: the place in the grid, which index kernels and draws read.
struct Position {
  int64_t row;           // first row of the block
  int64_t chunk_column;  // first column of the chunk
  int64_t tile_column;   // first column of the tile
  int64_t element;       // first element of the tile, counted row by row
  int64_t zero;          // 0, the element of a SCALAR draw
  tn_random random;      // of the step
};
constexpr int64_t kPositionBytes = 64;
static_assert(sizeof(Position) <= kPositionBytes);

// A cursor that moves with each tile, and by how many bytes.
struct Step {
  int64_t cursor;
  int64_t bytes;
};
// Bytes that a chunk needs in the scratch for its cursors: their pointers, their bases, and the steps.
[[nodiscard]] inline int64_t cursor_bytes(const Code& code) {
  const size_t steps = code.tile_cursors.size() + code.stores.size();
  return static_cast<int64_t>(code.cursors.size() * 2 * sizeof(uintptr_t) + steps * sizeof(Step));
}

// A prepared program: the code of its passes, and the memory that a call needs.
struct Binding {
  tn_dim rows = {}, columns = {};
  bool wide = false;
  uint32_t inputs_count = 0;
  uint32_t outputs_count = 0;
  std::vector<int32_t> inputs_read;  // numbers of the inputs that a call must have
  std::vector<uint64_t> constants;   // one lane each
  std::vector<Code> passes;
  std::shared_ptr<const Functions> functions;  // that calls of the passes are compiled to; null: none
  std::vector<int64_t> results;                // offsets of the global reductions' results in the shared memory
  std::vector<uint8_t> result_extents;
  int64_t memories = 0;  // offset of the table of memories in the shared memory
  int64_t shared_bytes = 0;
  int64_t scratch_bytes = 0;  // per worker
  int32_t workers = 1;        // scratch memories of a call; with more workers, each is a task
};

// Whether every call has a kernel. False for an opcode that only a newer host knows.
[[nodiscard]] bool is_complete(const Binding& binding);
[[nodiscard]] inline uint64_t workspace_bytes(const Binding& binding) {
  return static_cast<uint64_t>(binding.shared_bytes + binding.workers * binding.scratch_bytes);
}

// How a call walks the grid of a pass. Depends on the sizes alone, never on the number of workers.
struct Walk {
  int64_t rows, columns;              // of the grid; a flat one is one row
  int64_t chunk_rows, chunk_columns;  // of a chunk
  int64_t row_chunks, column_chunks;
  int64_t tile_columns;
  int64_t made_rows;  // of a chunk, if they are prescribed
};
// Chunks along the columns of a grid that is not flat.
[[nodiscard]] int64_t column_chunks(const Code& code);
// Sets the members of `code` that describe tiles and chunks. by_column: the pass reduces to PER_COLUMN.
void choose_tiles(const tn_pointwise_site& site, const Pass& pass, bool by_column, const Chunks& chunks, Code& code);
[[nodiscard]] Walk walk(const Code& code, int64_t rows, int64_t columns);
// Whether the grid has one tile, which is the first one of the first block and chunk.
[[nodiscard]] bool is_one_tile(const Code& code, int64_t rows, int64_t columns);

[[nodiscard]] inline int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Generates the code of a pass, and adds its constants to the binding, whose results and shared_bytes (the end of what
// all passes keep) are known. missing: as for generate.
[[nodiscard]] Code generate_pass(const tn_pointwise_site& site, Isa isa, const Pass& pass, const Chunks& chunks,
                                 Binding& binding, tn_dtype* missing);

// Generates the code of all passes. functions: compiles runs of calls, which changes no bit of a result; null: does
// not. *missing: an element type that is not offered, or TN_COMPUTE if all are. Throws only std::bad_alloc and
// std::length_error.
[[nodiscard]] Binding generate(const tn_pointwise_site& site, Isa isa, FunctionCache* functions, tn_dtype* missing,
                               const Chunks& chunks = {});

// Returns what generate makes, which equal sites share. caches: null: neither compiles nor shares.
[[nodiscard]] std::shared_ptr<const Binding> binding_at(const tn_pointwise_site& site, Isa isa, ProgramCaches* caches,
                                                        tn_dtype* missing, const Chunks& chunks = {});

}  // namespace tenon::cpu
