// Turns a pass into calls of block kernels. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

#include "pointwise/generate_code.h"

namespace tenon::cpu {

namespace {

Span span_of(uint8_t extent) {
  switch (extent) {
    case TN_SCALAR:
      return Span::kOne;
    case TN_PER_COLUMN:
      return Span::kColumns;
    case TN_PER_ROW:
      return Span::kRows;
    default:
      return Span::kElements;
  }
}

// A constant as a lane, in the low bytes.
uint64_t constant_lane(const Node& n, bool wide) {
  if (n.kind == TN_LOGICAL) return n.number != 0 ? ~uint64_t{0} : 0;
  if (n.kind == TN_FLOAT)
    return wide ? std::bit_cast<uint64_t>(n.number) : std::bit_cast<uint32_t>(static_cast<float>(n.number));
  const double end = wide ? 0x1p63 : 0x1p31;
  const int64_t most = wide ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max();
  if (n.number != n.number) return 0;
  const int64_t whole = n.number >= end ? most : n.number < -end ? -most - 1 : static_cast<int64_t>(n.number);
  return static_cast<uint64_t>(whole);
}

class Generator {
 public:
  Generator(const tn_pointwise_site& site, Isa isa, const Pass& pass, const Chunks& chunks, Binding& binding,
            tn_dtype* missing)
      : site_(site),
        isa_(isa),
        pass_(pass),
        chunks_(chunks),
        binding_(binding),
        missing_(missing),
        wide_(site.compute == TN_F64),
        lane_(wide_ ? 8 : 4),
        shared_(binding.shared_bytes) {}

  Code run() {
    const bool by_column = std::any_of(pass_.reductions.begin(), pass_.reductions.end(), [&](const ReductionSink& r) {
      return binding_.result_extents[static_cast<size_t>(r.result)] == TN_PER_COLUMN;
    });
    choose_tiles(site_, pass_, by_column, chunks_, code_);
    count_uses();
    stage_.assign(pass_.nodes.size(), -1);
    tile_.assign(pass_.nodes.size(), -1);
    scratch_ = kPositionBytes;
    for (size_t i = 0; i < pass_.nodes.size(); ++i) emit(static_cast<int32_t>(i));
    for (const OutputSink& sink : pass_.outputs) store(sink);
    find_hazards();
    code_.scratch_bytes = round_up(scratch_, 64);
    code_.shared_bytes = shared_;
    return std::move(code_);
  }

 private:
  struct Operand {
    int32_t cursor;
    bool one;
  };

  [[nodiscard]] const Node& node(int32_t i) const { return pass_.nodes[static_cast<size_t>(i)]; }
  int32_t& stage(int32_t i) { return stage_[static_cast<size_t>(i)]; }

  void count_uses();
  void emit(int32_t i);
  int32_t load(const Node& n);
  Cursor known(const Node& n);
  int32_t index(const Node& n);
  int32_t uniform(const Node& n);
  int32_t operation(const Node& n);
  int32_t input_cursor(int32_t input, uint8_t extent, int64_t bytes);
  Operand operand(int32_t i, uint8_t consumer);
  int32_t tile_cursor(int32_t i);
  int32_t spread(int32_t i);
  void accumulate(int32_t i, const ReductionSink& sink);
  void store(const OutputSink& sink);
  void find_hazards();

  // The list of the calls that compute values of an extent.
  std::vector<Call>& calls(uint8_t extent) {
    switch (extent) {
      case TN_SCALAR:
        return code_.scalar_calls;
      case TN_PER_COLUMN:
        return code_.column_calls;
      case TN_PER_ROW:
        return code_.by_row ? code_.tile_calls : code_.row_calls;
      default:
        return code_.tile_calls;
    }
  }
  int32_t add(const Cursor& cursor) {
    code_.cursors.push_back(cursor);
    return static_cast<int32_t>(code_.cursors.size()) - 1;
  }
  int64_t scratch(int64_t bytes) {
    const int64_t offset = scratch_;
    scratch_ += round_up(bytes, 64) + kRegisterSlack;
    return offset;
  }
  [[nodiscard]] int64_t tile_bytes() const { return code_.tile_rows * code_.tile_columns * lane_; }
  int32_t make_register(uint8_t extent);
  int64_t take_tile();
  // Counts one reader of a value in the tile as done; frees the value's register after the last one.
  void release(int32_t i);

  const tn_pointwise_site& site_;
  const Isa isa_;
  const Pass& pass_;
  const Chunks chunks_;
  Binding& binding_;
  tn_dtype* const missing_;
  const bool wide_;
  const int64_t lane_;
  int64_t shared_;
  int64_t scratch_ = 0;
  Code code_;
  std::vector<int32_t> stage_;  // cursor of each node in its own extent
  std::vector<int32_t> tile_;   // cursor of a PER_ROW or PER_COLUMN node as FULL operations read it
  std::vector<int> uses_;       // readers within the tile that are not emitted yet
  std::vector<int64_t> owned_;  // offset of the tile register that a node occupies, or -1
  std::vector<int64_t> free_;   // offsets of unused tile registers
};

void Generator::count_uses() {
  uses_.assign(pass_.nodes.size(), 0);
  owned_.assign(pass_.nodes.size(), -1);
  for (const Node& n : pass_.nodes) {
    if (n.extent != TN_FULL && !n.is_reduction()) continue;
    for (int k = 0; k < n.operands_count(); ++k) ++uses_[static_cast<size_t>(n.operands[k])];
  }
  for (const OutputSink& sink : pass_.outputs) ++uses_[static_cast<size_t>(sink.node)];
  for (const ReductionSink& sink : pass_.reductions) ++uses_[static_cast<size_t>(sink.node)];
}

int64_t Generator::take_tile() {
  if (free_.empty()) return scratch(tile_bytes());
  const int64_t offset = free_.back();
  free_.pop_back();
  return offset;
}

void Generator::release(int32_t i) {
  if (--uses_[static_cast<size_t>(i)] != 0 || owned_[static_cast<size_t>(i)] < 0) return;
  free_.push_back(owned_[static_cast<size_t>(i)]);
  owned_[static_cast<size_t>(i)] = -1;
}

int32_t Generator::make_register(uint8_t extent) {
  Cursor cursor;
  switch (extent) {
    case TN_SCALAR:
      cursor.home = Home::kShared;
      cursor.offset = shared_;
      shared_ += 8;
      break;
    case TN_PER_COLUMN:
      cursor.from_chunk = true;
      cursor.column_bytes = lane_;
      cursor.offset = scratch((code_.whole_rows ? code_.columns : std::min(code_.columns, kChunkColumns)) * lane_);
      break;
    case TN_PER_ROW:
      cursor.from_block = true;
      cursor.row_bytes = lane_;
      cursor.offset = scratch(code_.block_rows * lane_);
      break;
    default:
      cursor.offset = take_tile();
  }
  return add(cursor);
}

int32_t Generator::input_cursor(int32_t input, uint8_t extent, int64_t bytes) {
  Cursor cursor;
  cursor.home = Home::kInput;
  cursor.index = input;
  if (extent == TN_PER_ROW) cursor.moves = Moves::kBlock;
  if (extent == TN_FULL) cursor.moves = Moves::kTile;
  if (extent == TN_PER_ROW) cursor.row_bytes = bytes;
  if (extent == TN_FULL) cursor.row_bytes = bytes * code_.columns;
  if (extent == TN_PER_COLUMN || extent == TN_FULL) cursor.column_bytes = bytes;
  if (extent == TN_FULL) code_.stream_bytes += bytes;
  return add(cursor);
}

// The cursor of an input: its memory if the elements are lanes already, else a register that a load kernel fills.
int32_t Generator::load(const Node& n) {
  const tn_dtype dtype = site_.inputs[n.index];
  const int32_t memory = input_cursor(n.index, n.extent, tn_dtype_bytes(dtype));
  const tn_dtype integer = wide_ ? TN_I64 : TN_I32;
  if ((n.kind == TN_FLOAT && dtype == site_.compute) || (n.kind == TN_INT && dtype == integer)) return memory;
  const Kernel kernel = load_kernel(isa_, wide_, n.kind, dtype);
  if (kernel == nullptr) *missing_ = dtype;
  const int32_t to = make_register(n.extent);
  calls(n.extent).push_back({kernel, span_of(n.extent), to, memory, memory, memory});
  return to;
}

void Generator::emit(int32_t i) {
  const Node& n = node(i);
  switch (n.operation) {
    case kLoad:
      stage(i) = load(n);
      break;
    case kConstant:
    case kResult:
      stage(i) = add(known(n));
      break;
    case kIndex:
      stage(i) = index(n);
      break;
    case TN_OP_UNIFORM:
      stage(i) = uniform(n);
      break;
    default:
      stage(i) = operation(n);
  }
  const Cursor& cursor = code_.cursors[static_cast<size_t>(stage(i))];
  if (n.extent == TN_FULL && cursor.home == Home::kScratch) owned_[static_cast<size_t>(i)] = cursor.offset;
  for (const ReductionSink& sink : pass_.reductions)
    if (sink.node == i) accumulate(i, sink);
}

// A value known before the pass: a constant, or the result of an earlier reduction.
Cursor Generator::known(const Node& n) {
  Cursor cursor;
  if (n.operation == kConstant) {
    cursor.home = Home::kConstant;
    cursor.offset = static_cast<int64_t>(binding_.constants.size() * sizeof(uint64_t));
    binding_.constants.push_back(constant_lane(n, wide_));
    return cursor;
  }
  cursor.home = Home::kShared;
  cursor.offset = binding_.results[static_cast<size_t>(n.index)];
  if (n.extent != TN_SCALAR) cursor.column_bytes = lane_;
  if (n.extent == TN_FULL) cursor.moves = Moves::kTile;
  return cursor;
}

int32_t Generator::index(const Node& n) {
  Cursor start;
  start.offset = static_cast<int64_t>(n.extent == TN_PER_ROW      ? offsetof(Position, row)
                                      : n.extent == TN_PER_COLUMN ? offsetof(Position, chunk_column)
                                                                  : offsetof(Position, tile_column));
  const int32_t from = add(start);
  const int32_t to = make_register(n.extent);
  calls(n.extent).push_back({index_kernel(isa_, wide_), span_of(n.extent), to, from, from, from});
  return to;
}

int32_t Generator::uniform(const Node& n) {
  Cursor start;
  start.offset = static_cast<int64_t>(n.extent == TN_SCALAR       ? offsetof(Position, zero)
                                      : n.extent == TN_PER_ROW    ? offsetof(Position, row)
                                      : n.extent == TN_PER_COLUMN ? offsetof(Position, chunk_column)
                                                                  : offsetof(Position, element));
  Cursor random;
  random.offset = offsetof(Position, random);
  Cursor draw;
  draw.home = Home::kConstant;
  draw.offset = static_cast<int64_t>(binding_.constants.size() * sizeof(uint64_t));
  binding_.constants.push_back(static_cast<uint32_t>(n.index));
  const int32_t operands[3] = {add(random), add(draw), add(start)};
  const int32_t to = make_register(n.extent);
  calls(n.extent).push_back(
      {uniform_kernel(isa_, wide_), span_of(n.extent), to, operands[0], operands[1], operands[2]});
  return to;
}

int32_t Generator::operation(const Node& n) {
  const int count = n.operands_count();
  if (count == 0) {  // an opcode of a later version: a call without a kernel, which is_complete finds
    const int32_t to = make_register(n.extent);
    calls(n.extent).push_back({nullptr, span_of(n.extent), to, to, to, to});
    return to;
  }
  const uint8_t consumer = n.is_reduction() ? uint8_t{TN_FULL} : n.extent;
  KernelKey key = {isa_, wide_, n.operation, node(n.operands[0]).kind, n.kind, 0};
  int32_t from[3] = {-1, -1, -1};
  for (int k = 0; k < count; ++k) {
    const Operand read = operand(n.operands[k], consumer);
    from[k] = read.cursor;
    key.broadcast |= static_cast<uint8_t>(read.one ? 1U << k : 0U);
  }
  for (int k = count; k < 3; ++k) from[k] = from[0];
  if (consumer == TN_FULL)
    for (int k = 0; k < count; ++k) release(n.operands[k]);
  const int32_t to = make_register(n.extent);  // may be the register of an operand that was read for the last time
  const bool is_math = tn_op_info(n.operation).op_class == TN_CLASS_MATH;
  Kernel kernel = is_math ? math_kernel(key) : arithmetic_kernel(key);
  if (n.is_reduction()) kernel = row_kernel(isa_, wide_, n.operation, n.kind);
  if (n.is_reduction()) key = {};
  calls(n.extent).push_back({kernel, span_of(n.extent), to, from[0], from[1], from[2], key});
  return to;
}

// The operand through which a call on values of extent `consumer` reads value i.
Generator::Operand Generator::operand(int32_t i, uint8_t consumer) {
  const uint8_t extent = node(i).extent;
  if (extent == consumer) return {stage(i), false};
  if (extent == TN_SCALAR) return {stage(i), true};
  if (code_.tile_rows > 1) return {spread(i), false};
  return {tile_cursor(i), extent == TN_PER_ROW};
}

int32_t Generator::tile_cursor(int32_t i) {
  int32_t& cursor = tile_[static_cast<size_t>(i)];
  if (cursor >= 0) return cursor;
  Cursor moving = code_.cursors[static_cast<size_t>(stage(i))];
  moving.moves = Moves::kTile;
  const bool fixed = node(i).extent == TN_PER_ROW ? code_.by_row : code_.whole_rows;
  cursor = fixed ? stage(i) : add(moving);
  return cursor;
}

// Spreads a value over a tile of several rows: a PER_ROW value for every tile, a PER_COLUMN value once per chunk.
int32_t Generator::spread(int32_t i) {
  int32_t& cursor = tile_[static_cast<size_t>(i)];
  if (cursor >= 0) return cursor;
  Cursor made;
  if (node(i).extent == TN_PER_COLUMN) {
    made.offset = scratch(tile_bytes());
    cursor = add(made);
    code_.column_calls.push_back(
        {spread_columns_kernel(isa_, wide_), Span::kRows, cursor, stage(i), stage(i), stage(i)});
    return cursor;
  }
  Cursor moving = code_.cursors[static_cast<size_t>(stage(i))];
  moving.moves = Moves::kTile;
  const int32_t from = code_.by_row ? stage(i) : add(moving);
  made.offset = take_tile();
  owned_[static_cast<size_t>(i)] = made.offset;
  cursor = add(made);
  code_.tile_calls.push_back({spread_rows_kernel(isa_, wide_), Span::kRows, cursor, from, from, from});
  return cursor;
}

// Joins each tile with an accumulator of the tile's shape, which is folded at the end of the chunk. If a tile is one
// row, the accumulator of a column reduction is the chunk's partial result.
void Generator::accumulate(int32_t i, const ReductionSink& sink) {
  const uint8_t result_extent = binding_.result_extents[static_cast<size_t>(sink.result)];
  const uint8_t extent = node(i).extent;
  // In a pass over columns alone the operand is FULL and the result SCALAR.
  Reduction reduction = {sink.operation, node(i).kind, result_extent, sink.result, -1, 0, 0};
  Cursor cursor;
  if (result_extent == TN_PER_COLUMN && code_.tile_rows == 1) {
    cursor.home = Home::kPartial;
    cursor.index = static_cast<int32_t>(code_.reductions.size());
    cursor.column_bytes = lane_;
    if (!code_.whole_rows) cursor.moves = Moves::kTile;
  } else {
    reduction.length = extent == TN_PER_ROW ? code_.tile_rows : code_.tile_rows * code_.tile_columns;
    reduction.accumulator = scratch(reduction.length * lane_);
    cursor.offset = reduction.accumulator;
  }
  reduction.partial = shared_ = round_up(shared_, 64);
  shared_ += result_extent == TN_PER_COLUMN ? code_.most_row_chunks * code_.columns * lane_
             : code_.flat                   ? code_.most_chunks * 8
                                            : code_.most_row_chunks * column_chunks(code_) * 8;
  const int32_t to = add(cursor);
  const uint16_t join = sink.operation == TN_OP_REDUCE_SUM   ? TN_OP_ADD
                        : sink.operation == TN_OP_REDUCE_MAX ? TN_OP_MAX
                                                             : TN_OP_MIN;
  const KernelKey key = {isa_, wide_, join, node(i).kind, node(i).kind, 0};
  calls(extent).push_back({arithmetic_kernel(key), span_of(extent), to, to, stage(i), stage(i), key});
  code_.reductions.push_back(reduction);
  release(i);
}

void Generator::store(const OutputSink& sink) {
  const Node& n = node(sink.node);
  const tn_dtype given = site_.outputs[sink.output];
  const tn_dtype dtype = given == TN_COMPUTE ? site_.compute : given;
  Cursor cursor;
  cursor.home = Home::kOutput;
  cursor.index = sink.output;
  const int64_t bytes = tn_dtype_bytes(dtype);
  if (n.extent == TN_PER_ROW) cursor.row_bytes = bytes;
  if (n.extent == TN_FULL) cursor.row_bytes = bytes * code_.columns;
  if (n.extent == TN_FULL) cursor.column_bytes = bytes;
  if (n.extent != TN_SCALAR) cursor.moves = Moves::kTile;
  if (n.extent == TN_FULL) code_.stream_bytes += bytes;

  Store made;
  made.write = store_kernel(isa_, wide_, n.kind, dtype, false);
  made.add = store_kernel(isa_, wide_, n.kind, dtype, true);
  if (made.write == nullptr) *missing_ = dtype;
  made.span = span_of(n.extent);
  made.cursor = add(cursor);
  made.output = sink.output;
  made.value = stage(sink.node);
  if (code_.cursors[static_cast<size_t>(made.value)].home == Home::kInput) {
    // The value is an input, whose memory another output may share: it is copied before anything is stored.
    const int32_t to = make_register(n.extent);
    const KernelKey key = {isa_, wide_, kCopy, n.kind, n.kind, 0};
    calls(n.extent).push_back({arithmetic_kernel(key), span_of(n.extent), to, made.value, made.value, made.value, key});
    stage(sink.node) = made.value = to;
  }
  const tn_dtype integer = wide_ ? TN_I64 : TN_I32;
  const bool as_is = (n.kind == TN_FLOAT && dtype == site_.compute) || (n.kind == TN_INT && dtype == integer);
  const bool again =
      std::any_of(code_.stores.begin(), code_.stores.end(), [&](const Store& s) { return s.value == made.value; });
  Cursor& value = code_.cursors[static_cast<size_t>(made.value)];
  if (n.extent == TN_FULL && as_is && !again && value.home == Home::kScratch) {
    made.direct = true;
  }
  code_.stores.push_back(std::move(made));
}

// Lists, for each direct output, the inputs that a tile reads after writing the output.
void Generator::find_hazards() {
  for (Store& store : code_.stores) {
    if (!store.direct) continue;
    bool written = false;
    for (const Call& call : code_.tile_calls) {
      if (written)
        for (const int32_t operand : {call.a, call.b, call.c}) {
          const Cursor& cursor = code_.cursors[static_cast<size_t>(operand)];
          if (cursor.home == Home::kInput && cursor.column_bytes != 0) store.hazards.push_back(cursor.index);
        }
      written |= call.out == store.value;
    }
    std::sort(store.hazards.begin(), store.hazards.end());
    store.hazards.erase(std::unique(store.hazards.begin(), store.hazards.end()), store.hazards.end());
  }
}

}  // namespace

Code generate_pass(const tn_pointwise_site& site, Isa isa, const Pass& pass, const Chunks& chunks, Binding& binding,
                   tn_dtype* missing) {
  return Generator(site, isa, pass, chunks, binding, missing).run();
}

}  // namespace tenon::cpu
