// Runs the code of a pointwise program: the passes in order, the chunks of a pass in parallel.
// SPDX-License-Identifier: Apache-2.0
#include "pointwise/run_passes.h"

#include <algorithm>
#include <cstring>

#include "pointwise/reduce.h"

namespace tenon::cpu {

namespace {

// Addresses are integers, because a cursor leaves its memory when it moves on after the last tile, which is undefined
// for a pointer.
using Address = uintptr_t;

Address address(const void* memory) { return reinterpret_cast<Address>(memory); }
void* pointer(Address a) { return reinterpret_cast<void*>(a); }  // NOLINT(performance-no-int-to-ptr)
Address moved(Address from, int64_t bytes) { return from + static_cast<Address>(bytes); }

// The argument `count` of kernel calls, by Span, and the argument `columns`.
struct Counts {
  int64_t by_span[4];
  int64_t columns;
};

void execute(const std::vector<Call>& calls, const Address* cursors, const Counts& counts) {
  for (const Call& call : calls)
    call.kernel(pointer(cursors[call.out]), pointer(cursors[call.a]), pointer(cursors[call.b]),
                pointer(cursors[call.c]), counts.by_span[static_cast<size_t>(call.span)], counts.columns);
}

// The walk of a grid of one tile.
Walk one_tile(const Code& code, int64_t rows, int64_t columns) {
  const int64_t r = code.flat ? 1 : rows, c = code.flat ? rows * columns : columns;
  return {r, c, r, c, 1, 1, c, r};
}

// One run of one pass.
class PassRun {
 public:
  PassRun(const Binding& binding, const Code& code, const tn_call& call, const tn_random& random, const RowMaker* maker,
          int64_t rows, int64_t columns)
      : binding_(binding),
        code_(code),
        call_(call),
        random_(random),
        is_one_tile_(is_one_tile(code, rows, columns)),
        walk_(is_one_tile_ ? one_tile(code, rows, columns) : walk(code, rows, columns)),
        maker_(maker),
        rows_(rows),
        lane_(binding.wide ? 8 : 4),
        shared_(static_cast<uint8_t*>(call.workspace)),
        scratch_(shared_ + binding.shared_bytes),
        memories_(reinterpret_cast<const Address*>(shared_ + binding.memories)) {
    for (const Store& s : code.stores) stores_ |= call.requests[s.output] != TN_REQUEST_NONE && !is_direct(s);
  }

  void run(const tn_parallel& parallel);

 private:
  // The chunk that a worker runs: its place in the grid, and the pointers of its cursors.
  struct Chunk {
    uint8_t* scratch;
    Address* cursors;
    Address* bases;
    Step* steps;
    int64_t steps_count;
    int64_t row_chunk, column_chunk;
    int64_t first_row, last_row, first_column, last_column;
    int64_t block;  // first row of the current block
  };

  void run_one_tile() const;
  void run_chunk(int64_t index, int32_t worker) const;
  void run_block(Chunk& chunk, int64_t last) const;
  void run_tile(const Chunk& chunk, int64_t row, int64_t rows, int64_t column, int64_t columns) const;
  void point_tile(Chunk& chunk, int64_t row) const;
  void store_tile(const Chunk& chunk, const Counts& counts) const;
  [[nodiscard]] Chunk open_chunk(int64_t index, uint8_t* scratch) const;
  // The rows of a tile that the chunk has: a chunk may be smaller.
  [[nodiscard]] int64_t tile_rows(const Chunk& chunk) const {
    return std::min(code_.tile_rows, chunk.last_row - chunk.first_row);
  }
  // The elements of the accumulator of a reduction that the tiles of the chunk join; those behind them would be the
  // identity. A scalar is folded in four runs, whose elements the number must not shift.
  [[nodiscard]] int64_t joined(const Reduction& r, const Chunk& chunk) const {
    if (r.extent == TN_PER_COLUMN) return tile_rows(chunk) * code_.columns;
    // At least the rows: values per row are there without columns too.
    const int64_t columns = std::max<int64_t>(1, chunk.last_column - chunk.first_column);
    const int64_t elements = (chunk.last_row - chunk.first_row) * columns;
    return std::min(r.length, (elements + 3) / 4 * 4);
  }
  [[nodiscard]] Address base(const Cursor& cursor, const Chunk& chunk) const;
  void point(Chunk& chunk, int32_t cursor, int64_t row, int64_t column) const;
  void reset_accumulators(const Chunk& chunk) const;
  void fold_accumulators(const Chunk& chunk) const;
  void combine(const tn_parallel& parallel) const;
  void run_scalars() const;
  [[nodiscard]] Fold fold(const Reduction& r) const { return {r.operation, r.kind, binding_.wide}; }
  // Whether the value is computed in the output's own memory (mark_direct).
  [[nodiscard]] bool is_direct(const Store& store) const {
    return store.direct && shared_[static_cast<size_t>(store.output)] != 0;
  }
  // The partial result [columns] of a row chunk.
  uint8_t* partial_row(const Reduction& r, int64_t row_chunk) const {
    return shared_ + r.partial + row_chunk * code_.columns * lane_;
  }

  const Binding& binding_;
  const Code& code_;
  const tn_call& call_;
  const tn_random random_;
  const bool is_one_tile_;
  const Walk walk_;
  const RowMaker* const maker_;  // null: all inputs are in memory
  const int64_t rows_;           // of the grid, even if it is flat
  const int64_t lane_;
  uint8_t* const shared_;
  uint8_t* const scratch_;
  const Address* const memories_;  // see Cursor::memory
  bool stores_ = false;            // whether a tile ends with stores
};

Address PassRun::base(const Cursor& cursor, const Chunk& chunk) const {
  if (cursor.memory >= 0) return moved(memories_[cursor.memory], cursor.offset);
  if (cursor.home == Home::kScratch) return moved(address(chunk.scratch), cursor.offset);
  return address(partial_row(code_.reductions[static_cast<size_t>(cursor.index)], chunk.row_chunk));
}

void PassRun::point(Chunk& chunk, int32_t cursor, int64_t row, int64_t column) const {
  const Cursor& s = code_.cursors[static_cast<size_t>(cursor)];
  const int64_t r = row - (s.from_block ? chunk.block : 0);
  const int64_t c = column - (s.from_chunk ? chunk.first_column : 0);
  chunk.cursors[cursor] = moved(chunk.bases[cursor], r * s.row_bytes + c * s.column_bytes);
}

PassRun::Chunk PassRun::open_chunk(int64_t index, uint8_t* scratch) const {
  Chunk chunk = {};
  chunk.scratch = scratch;
  chunk.cursors = reinterpret_cast<Address*>(scratch + code_.scratch_bytes);
  chunk.bases = chunk.cursors + code_.cursors.size();
  chunk.row_chunk = walk_.column_chunks == 0 ? 0 : index / walk_.column_chunks;
  chunk.column_chunk = walk_.column_chunks == 0 ? 0 : index % walk_.column_chunks;
  chunk.first_row = chunk.row_chunk * walk_.chunk_rows;
  chunk.last_row = std::min(chunk.first_row + walk_.chunk_rows, walk_.rows);
  chunk.first_column = chunk.column_chunk * walk_.chunk_columns;
  chunk.last_column = std::min(chunk.first_column + walk_.chunk_columns, walk_.columns);
  chunk.block = chunk.first_row;
  *reinterpret_cast<Position*>(scratch) = {chunk.first_row, chunk.first_column, chunk.first_column, 0, 0, random_};
  for (size_t i = 0; i < code_.cursors.size(); ++i) {
    chunk.bases[i] = base(code_.cursors[i], chunk);
    point(chunk, static_cast<int32_t>(i), chunk.first_row, chunk.first_column);
  }
  chunk.steps = reinterpret_cast<Step*>(chunk.bases + code_.cursors.size());
  const auto add_step = [&](int32_t cursor, const Cursor& like) {
    const int64_t bytes = code_.whole_rows ? code_.tile_rows * like.row_bytes : walk_.tile_columns * like.column_bytes;
    if (bytes != 0) chunk.steps[chunk.steps_count++] = {cursor, bytes};
  };
  for (const int32_t cursor : code_.tile_cursors) add_step(cursor, code_.cursors[static_cast<size_t>(cursor)]);
  for (const Store& s : code_.stores)
    if (is_direct(s)) add_step(s.value, code_.cursors[static_cast<size_t>(s.cursor)]);
  return chunk;
}

void PassRun::reset_accumulators(const Chunk& chunk) const {
  for (const Reduction& r : code_.reductions) {
    if (r.accumulator >= 0) {
      fill_identity(fold(r), chunk.scratch + r.accumulator, joined(r, chunk));
    } else {
      fill_identity(fold(r), partial_row(r, chunk.row_chunk) + chunk.first_column * lane_,
                    chunk.last_column - chunk.first_column);
    }
  }
}

void PassRun::fold_accumulators(const Chunk& chunk) const {
  for (const Reduction& r : code_.reductions) {
    if (r.accumulator < 0) continue;
    const uint8_t* lanes = chunk.scratch + r.accumulator;
    if (r.extent == TN_PER_COLUMN) {
      fold_columns(fold(r), lanes, tile_rows(chunk), code_.columns, partial_row(r, chunk.row_chunk));
    } else {
      const int64_t number = chunk.row_chunk * walk_.column_chunks + chunk.column_chunk;
      fold_scalar(fold(r), lanes, joined(r, chunk), shared_ + r.partial + 8 * number);
    }
  }
}

void PassRun::store_tile(const Chunk& chunk, const Counts& counts) const {
  for (const Store& s : code_.stores) {
    const uint8_t request = call_.requests[s.output];
    if (request == TN_REQUEST_NONE || is_direct(s)) continue;
    const Kernel kernel = request == TN_REQUEST_ADD ? s.add : s.write;
    const void* value = pointer(chunk.cursors[s.value]);
    kernel(pointer(chunk.cursors[s.cursor]), value, value, value, counts.by_span[static_cast<size_t>(s.span)],
           counts.columns);
  }
}

void PassRun::run_tile(const Chunk& chunk, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
  auto* position = reinterpret_cast<Position*>(chunk.scratch);
  position->tile_column = column;
  position->element = row * walk_.columns + column;
  const Counts counts = {{1, columns, rows, rows * columns}, columns};
  execute(code_.tile_calls, chunk.cursors, counts);
  if (stores_) store_tile(chunk, counts);
  for (const Step* step = chunk.steps; step != chunk.steps + chunk.steps_count; ++step)
    chunk.cursors[step->cursor] = moved(chunk.cursors[step->cursor], step->bytes);
}

// Points the cursors that move with tiles at the first tile of a row; those of direct values point into their outputs.
void PassRun::point_tile(Chunk& chunk, int64_t row) const {
  for (const int32_t cursor : code_.tile_cursors) point(chunk, cursor, row, chunk.first_column);
  for (const Store& s : code_.stores)
    if (is_direct(s)) chunk.cursors[s.value] = chunk.cursors[s.cursor];
}

// Runs the block of rows [chunk.block, last).
void PassRun::run_block(Chunk& chunk, int64_t last) const {
  const int64_t columns = chunk.last_column - chunk.first_column;
  for (const int32_t cursor : code_.block_cursors) point(chunk, cursor, chunk.block, chunk.first_column);
  execute(code_.row_calls, chunk.cursors, {{1, columns, last - chunk.block, 0}, columns});
  point_tile(chunk, chunk.block);
  for (int64_t row = chunk.block; row < last; row += code_.tile_rows) {
    if (code_.whole_rows) {
      run_tile(chunk, row, std::min(code_.tile_rows, last - row), chunk.first_column, columns);
      continue;
    }
    if (row != chunk.block) point_tile(chunk, row);
    for (int64_t c = chunk.first_column; c < chunk.last_column; c += walk_.tile_columns)
      run_tile(chunk, row, 1, c, std::min(walk_.tile_columns, chunk.last_column - c));
  }
}

// Like run_chunk, for a grid of one tile: no cursor moves, and all begin at their bases.
void PassRun::run_one_tile() const {
  if (maker_ != nullptr && code_.chunks.rows > 0) maker_->make(maker_->self, 0, rows_, 0);
  Chunk chunk = {};
  chunk.scratch = scratch_;
  chunk.cursors = reinterpret_cast<Address*>(scratch_ + code_.scratch_bytes);
  chunk.last_row = walk_.rows;
  chunk.last_column = walk_.columns;
  *reinterpret_cast<Position*>(scratch_) = {0, 0, 0, 0, 0, random_};
  for (size_t i = 0; i < code_.cursors.size(); ++i) chunk.cursors[i] = base(code_.cursors[i], chunk);
  const Counts counts = {{1, walk_.columns, walk_.rows, walk_.rows * walk_.columns}, walk_.columns};
  execute(code_.column_calls, chunk.cursors, counts);
  reset_accumulators(chunk);
  execute(code_.row_calls, chunk.cursors, counts);
  for (const Store& s : code_.stores)
    if (is_direct(s)) chunk.cursors[s.value] = chunk.cursors[s.cursor];
  execute(code_.tile_calls, chunk.cursors, counts);
  if (stores_) store_tile(chunk, counts);
  fold_accumulators(chunk);
}

void PassRun::run_chunk(int64_t index, int32_t worker) const {
  if (maker_ != nullptr && code_.chunks.rows > 0)
    maker_->make(maker_->self, index * walk_.made_rows, std::min((index + 1) * walk_.made_rows, rows_), worker);
  Chunk chunk = open_chunk(index, scratch_ + worker * binding_.scratch_bytes);
  const int64_t columns = chunk.last_column - chunk.first_column;
  auto* position = reinterpret_cast<Position*>(chunk.scratch);
  execute(code_.column_calls, chunk.cursors, {{1, columns, tile_rows(chunk), 0}, columns});
  reset_accumulators(chunk);
  while (chunk.block < chunk.last_row) {
    position->row = chunk.block;
    const int64_t last = std::min(chunk.block + code_.block_rows, chunk.last_row);
    run_block(chunk, last);
    chunk.block = last;
  }
  fold_accumulators(chunk);
}

// Combines the partial results of all chunks into the results of the pass's reductions.
void PassRun::combine(const tn_parallel& parallel) const {
  constexpr int64_t kStrip = 512;         // columns of a task
  constexpr int64_t kWorthwhile = 65536;  // partial results that are worth several tasks
  for (const Reduction& r : code_.reductions) {
    uint8_t* const result = shared_ + binding_.results[static_cast<size_t>(r.result)];
    if (r.extent == TN_SCALAR) {
      combine_scalars(fold(r), shared_ + r.partial, walk_.row_chunks * walk_.column_chunks, result);
      continue;
    }
    struct Task {
      const PassRun* run;
      const Reduction* reduction;
      uint8_t* result;
    } task = {this, &r, result};
    const auto strip = [](void* argument, int64_t index, int32_t) {
      const Task& t = *static_cast<const Task*>(argument);
      const int64_t columns = t.run->code_.columns;
      combine_columns(t.run->fold(*t.reduction), t.run->shared_ + t.reduction->partial, t.run->walk_.row_chunks,
                      columns, index * kStrip, std::min((index + 1) * kStrip, columns), t.result);
    };
    const int64_t strips = (code_.columns + kStrip - 1) / kStrip;
    if (strips > 1 && walk_.row_chunks * code_.columns >= kWorthwhile) {
      parallel.for_each(parallel.self, strips, strip, &task);
    } else {
      for (int64_t i = 0; i < strips; ++i) strip(&task, i, 0);
    }
  }
}

// Computes the SCALAR values on the calling thread. Chunks only read them.
void PassRun::run_scalars() const {
  if (code_.scalar_calls.empty() && code_.grid != Grid::kScalar) return;
  const Chunk chunk = open_chunk(0, scratch_);
  const Counts counts = {{1, 1, 1, 1}, 1};
  execute(code_.scalar_calls, chunk.cursors, counts);
  if (code_.grid == Grid::kScalar) store_tile(chunk, counts);
}

void PassRun::run(const tn_parallel& parallel) {
  run_scalars();
  if (code_.grid == Grid::kScalar) return;
  const int64_t chunks = walk_.row_chunks * walk_.column_chunks;
  struct Task {
    const PassRun* run;
    int64_t chunks, stride;
  } task = {this, chunks, binding_.workers};
  if (is_one_tile_) {
    run_one_tile();
  } else if (chunks == 1) {
    run_chunk(0, 0);
  } else if (chunks > 1 && parallel.workers <= binding_.workers) {
    parallel.for_each(
        parallel.self, chunks,
        [](void* argument, int64_t index, int32_t worker) {
          static_cast<const Task*>(argument)->run->run_chunk(index, worker);
        },
        &task);
  } else if (chunks > 1) {
    // More workers than scratch memories: task i uses scratch i and runs the chunks i, i + stride, i + 2 * stride, ...
    parallel.for_each(
        parallel.self, std::min<int64_t>(chunks, binding_.workers),
        [](void* argument, int64_t index, int32_t) {
          const Task& t = *static_cast<const Task*>(argument);
          for (int64_t i = index; i < t.chunks; i += t.stride) t.run->run_chunk(i, static_cast<int32_t>(index));
        },
        &task);
  }
  combine(parallel);
}

// Sets byte k of the workspace to 1 if output k is computed in its own memory: the request is WRITE, and no input that
// a tile reads after writing the output is the same memory.
void mark_direct(const Binding& binding, const tn_call& call) {
  auto* const direct = static_cast<uint8_t*>(call.workspace);
  std::memset(direct, 0, call.outputs_count);
  for (const Code& code : binding.passes) {
    for (const Store& s : code.stores) {
      if (!s.direct || call.requests[s.output] != TN_REQUEST_WRITE) continue;
      const void* to = tn_data(call.outputs[s.output]);
      const bool safe = std::none_of(s.hazards.begin(), s.hazards.end(),
                                     [&](int32_t input) { return tn_data(call.inputs[input]) == to; });
      direct[s.output] = safe ? 1 : 0;
    }
  }
}

// Fills the table that Code::number_memories describes.
void set_memories(const Binding& binding, const tn_call& call) {
  auto* const shared = static_cast<uint8_t*>(call.workspace);
  auto* memory = reinterpret_cast<Address*>(shared + binding.memories);
  *memory++ = address(shared);
  *memory++ = address(binding.constants.data());
  const auto add = [&](const tn_tensor* tensor) { *memory++ = tensor == nullptr ? 0 : address(tn_data(tensor)); };
  for (uint32_t i = 0; i < call.inputs_count; ++i) add(call.inputs[i]);
  for (uint32_t i = 0; i < call.outputs_count; ++i) add(call.outputs[i]);
}

// Whether a pass computes a reduction or an output that is requested.
bool is_wanted(const Code& code, const tn_call& call) {
  return !code.reductions.empty() || std::any_of(code.stores.begin(), code.stores.end(), [&](const Store& s) {
    return call.requests[s.output] != TN_REQUEST_NONE;
  });
}

tn_status check(const Binding& binding, const tn_execution& execution, const tn_call& call) {
  if (call.inputs_count != binding.inputs_count || call.outputs_count != binding.outputs_count)
    return tn_fail(execution.errors, TN_MISUSE, nullptr, "a pointwise call with another number of operands");
  for (const int32_t input : binding.inputs_read)
    if (call.inputs[input] == nullptr)
      return tn_fail(execution.errors, TN_MISUSE, "inputs", "a pointwise call without one of its inputs");
  for (uint32_t i = 0; i < call.outputs_count; ++i)
    if (call.requests[i] != TN_REQUEST_NONE && call.outputs[i] == nullptr)
      return tn_fail(execution.errors, TN_MISUSE, "outputs", "a pointwise call without an output that it requests");
  return TN_OK;
}

}  // namespace

tn_status run_pointwise(const Binding& binding, const tn_execution& execution, const tn_call& call,
                        const RowMaker* maker) {
  if (const tn_status status = check(binding, execution, call); status != TN_OK) return status;
  const int64_t rows = tn_dim_value(&binding.rows, execution.symbols);
  const int64_t columns = tn_dim_value(&binding.columns, execution.symbols);
  if (rows < 0 || columns < 0)
    return tn_fail(execution.errors, TN_MISUSE, nullptr, "a pointwise call over a negative number of rows or columns");
  mark_direct(binding, call);
  set_memories(binding, call);
  for (const Code& code : binding.passes) {
    if (!is_wanted(code, call) && (maker == nullptr || code.chunks.rows == 0)) continue;
    int64_t r = rows, c = columns;
    if (code.grid == Grid::kRows) c = 1;
    if (code.grid == Grid::kColumns) r = 1;
    PassRun(binding, code, call, *execution.random, maker, r, c).run(*execution.parallel);
  }
  return TN_OK;
}

}  // namespace tenon::cpu
