// Tiles and chunks: how a pass walks its grid. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "pointwise/generate_code.h"

namespace tenon::cpu {

namespace {

// Cost of an operation on an element, in simple operations.
int64_t cost_of(const Node& n) {
  switch (n.operation) {
    case TN_OP_SQRT:
    case TN_OP_DIV:
    case TN_OP_FLOOR_DIV:
    case TN_OP_MOD:
      return 4;
    case TN_OP_POW:
      return 40;
    default:
      break;
  }
  if (n.is_reduction()) return 4;
  return tn_op_info(n.operation).op_class == TN_CLASS_MATH ? 10 : 1;
}

// Simple operations of a chunk: a few microseconds, much more than starting a task costs, but enough chunks for many
// threads.
constexpr int64_t kChunkCost = 32768;
constexpr int64_t kMostChunks = 256;

// Chunks of a grid of rows x columns elements, by their cost.
int64_t chunks_for(int64_t rows, int64_t columns, const Code& code) {
  const int64_t elements = rows * std::max<int64_t>(columns, code.by_row ? 1 : 0);
  return std::clamp<int64_t>(elements * code.cost / kChunkCost, 1, kMostChunks);
}

}  // namespace

int64_t column_chunks(const Code& code) {
  return code.whole_rows ? 1 : (code.columns + kChunkColumns - 1) / kChunkColumns;
}

void choose_tiles(const tn_pointwise_site& site, const Pass& pass, bool by_column, const Chunks& chunks, Code& code) {
  code.grid = pass.grid;
  code.flat = pass.flat;
  code.by_row = pass.by_row;
  for (const Node& n : pass.nodes)
    if (n.extent == TN_FULL || n.is_reduction()) code.cost += cost_of(n);
  const int64_t most_rows = pass.grid == Grid::kColumns ? 1 : site.rows.bound;
  const int64_t most_columns = pass.grid == Grid::kRows ? 1 : site.columns.bound;
  code.most_chunks = most_rows < 0 || most_columns < 0 ? kMostChunks : chunks_for(most_rows, most_columns, code);
  code.most_row_chunks = code.most_chunks;
  code.chunks = chunks;
  if (chunks.rows > 0) {
    code.most_chunks = (most_rows + chunks.rows - 1) / chunks.rows;
    if (!chunks.exact) code.most_chunks = std::min(code.most_chunks, kMostChunks);
    code.most_row_chunks = code.most_chunks;
  }
  if (pass.flat) {
    code.tile_columns = kTileElements;
    return;
  }
  const int64_t columns = site.columns.offset;
  code.columns = columns;
  code.whole_rows = pass.by_row || columns <= 2 * kTileElements;
  code.tile_columns = code.whole_rows ? columns : kTileElements;
  if (columns == 0) code.tile_rows = kBlockRows;
  if (columns > 0 && columns < kLongRow) code.tile_rows = (kTileElements + columns - 1) / columns;
  code.block_rows = pass.by_row ? code.tile_rows : round_up(kBlockRows, code.tile_rows);
  // Each row chunk has a row of partial results of a column reduction: at most 2^18 elements in all, or 8 rows.
  constexpr int64_t kPartials = int64_t{1} << 18;
  const int64_t affordable = std::max<int64_t>(kPartials / std::max<int64_t>(columns, 1), 8);
  if (!by_column) return;
  code.partial_chunks = affordable;
  code.most_row_chunks = std::min(code.most_row_chunks, affordable);
}

namespace {

// Returns the rows of a chunk that is prescribed, for so many rows: sums along columns follow from them, so the bounds
// of the grid must not enter.
int64_t prescribed_rows(const Code& code, int64_t rows) {
  const Chunks& chunks = code.chunks;
  const auto share = [&](int64_t count) { return (rows + count - 1) / count; };
  int64_t least = chunks.rows;
  if (chunks.is_eighth) least = std::max(least, std::clamp<int64_t>(rows / 8, 16, 96));
  if (!chunks.exact) least = std::max(least, share(kMostChunks));
  if (code.flat) return least;
  if (code.partial_chunks > 0) least = std::max(least, share(code.partial_chunks));
  return round_up(least, chunks.exact ? chunks.rows : code.tile_rows);
}

}  // namespace

bool is_one_tile(const Code& code, int64_t rows, int64_t columns) {
  if (rows <= 0 || columns <= 0 || (code.chunks.rows > 0 && rows > prescribed_rows(code, rows))) return false;
  if (code.flat) return rows * columns <= kTileElements;
  return rows <= code.tile_rows && (code.whole_rows || columns <= kTileElements);
}

namespace {

// A walk in prescribed chunks of whole rows.
Walk walk_rows(const Code& code, int64_t rows, int64_t columns, int64_t tile_columns) {
  Walk w = {};
  w.tile_columns = tile_columns;
  w.made_rows = prescribed_rows(code, rows);
  const int64_t chunks = (rows + w.made_rows - 1) / w.made_rows;
  w.rows = code.flat ? 1 : rows;
  w.columns = code.flat ? rows * columns : columns;
  w.chunk_rows = code.flat ? 1 : w.made_rows;
  w.chunk_columns = code.flat ? w.made_rows * columns : columns;
  w.row_chunks = code.flat ? 1 : chunks;
  w.column_chunks = code.flat ? chunks : 1;
  return w;
}

}  // namespace

Walk walk(const Code& code, int64_t rows, int64_t columns) {
  // Bytes of the FULL tensors above which they do not fit into the cache.
  constexpr int64_t kCached = int64_t{32} << 20;
  Walk w = {};
  const int64_t chunks = std::min(chunks_for(rows, columns, code), code.most_chunks);
  w.tile_columns = code.tile_columns;
  if (!code.whole_rows && rows * columns * code.stream_bytes > kCached) w.tile_columns = kTileElementsInMemory;
  if (code.chunks.rows > 0) return walk_rows(code, rows, columns, w.tile_columns);
  if (code.flat) {
    w.rows = 1;
    w.columns = rows * columns;
    w.chunk_rows = 1;
    w.row_chunks = 1;
    w.chunk_columns = round_up((w.columns + chunks - 1) / chunks, kTileElements);
    w.column_chunks = w.columns == 0 ? 0 : (w.columns + w.chunk_columns - 1) / w.chunk_columns;
    return w;
  }
  w.rows = rows;
  w.columns = columns;
  w.chunk_columns = code.whole_rows ? columns : std::min(columns, kChunkColumns);
  w.column_chunks = column_chunks(code);
  const int64_t row_chunks = std::clamp<int64_t>(chunks / w.column_chunks, 1, code.most_row_chunks);
  w.chunk_rows = round_up((rows + row_chunks - 1) / row_chunks, code.tile_rows);
  w.row_chunks = rows == 0 ? 0 : (rows + w.chunk_rows - 1) / w.chunk_rows;
  return w;
}

}  // namespace tenon::cpu
