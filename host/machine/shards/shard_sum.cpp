// SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/shard_sum.h"

#include <cstring>
#include <utility>

#include "core/floating_point_mode.h"

namespace tenon::host {

namespace {

int32_t symbol_of(size_t gradient) { return TN_SYMBOL_FIRST_RAGGED + static_cast<int32_t>(gradient); }

Program sum() {
  ProgramWriter writer;
  const int32_t to = writer.input(TN_FULL);
  writer.output(writer.apply(TN_OP_ADD, to, writer.input(TN_FULL)));
  return writer.finish();
}

// Returns the program that merges the next values of a buffer: inputs 0 and 1; input 2 is the share of input 1 in a
// mean. The mean of equal numbers is that number, such as of a count of steps.
Program merged(int32_t merge) {
  ProgramWriter writer;
  const int32_t to = writer.input(TN_FULL), from = writer.input(TN_FULL), share = writer.input(TN_SCALAR);
  if (merge == TN_MERGE_MEAN)
    writer.output(writer.apply(TN_OP_ADD, to, writer.apply(TN_OP_MUL, share, writer.apply(TN_OP_SUB, from, to))));
  else
    writer.output(writer.apply(merge == TN_MERGE_SUM ? TN_OP_ADD : TN_OP_MAX, to, from));
  return writer.finish();
}

}  // namespace

void ShardSum::start(double share, bool dense) {
  reserve_rows();
  if (to_id_ != to_.memory_id() || from_id_ != from_.memory_id()) prepare();
  HostAccess& access = machine_.access();
  for (const Copied& part : copied_) {
    const uint64_t bytes = part.rows == nullptr ? part.bytes : part.bytes * static_cast<uint64_t>(*part.rows);
    access.write_by(part.here.data(), bytes,
                    [&](std::byte* at) { from_.machine().access().read(at, part.from, bytes); });
  }
  put_control(share);
  tn_execution execution = machine_.execution();
  execution.random = reinterpret_cast<const tn_random*>(control_.data());
  execution.symbols = reinterpret_cast<const int64_t*>(control_.data() + kSymbolsAt);
  execution.host_symbols = symbols_.data();
  const FloatingPointMode mode;
  for (size_t i = dense ? 0 : dense_calls_; i < calls_.size(); ++i) calls_[i]->run(execution, machine_.errors());
}

// Counts the rows of `from`, and makes room for them.
void ShardSum::reserve_rows() {
  const size_t gradients = machine_.model().sparse_gradients.size();
  symbols_.resize(TN_SYMBOL_FIRST_RAGGED + gradients);
  for (size_t i = 0; i < gradients; ++i) {
    rows_of(i) = from_.sparse_gradient(i).count();
    to_.reserve_rows(i, rows_of(i));
  }
}

void ShardSum::prepare() {
  const SharedObjects::Stream stream(machine_.device()->shared(), &machine_.access());
  to_id_.reset();
  calls_.clear();
  copied_.clear();
  control_ = DeviceMemory(machine_.device(), kSymbolsAt + symbols_.size() * sizeof(int64_t));
  add_dense();
  dense_calls_ = calls_.size();
  for (size_t i = 0; i < machine_.model().sparse_gradients.size(); ++i) add_rows(i);
  merge_buffers();
  std::vector<OperandCall*> calls;
  for (const auto& call : calls_) calls.push_back(call.get());
  workspace_ = shared_workspace(machine_.device(), calls);
  to_id_ = to_.memory_id();
  from_id_ = from_.memory_id();
}

// Returns where calls on the device of the sum read what lies at `from` in the other shard's memory.
void* ShardSum::here(const void* from, uint64_t bytes, int64_t capacity, const int64_t* rows) {
  if (from_.machine().device() == machine_.device())
    return const_cast<void*>(from);  // an input: calls do not write to it
  copied_.push_back({from, DeviceMemory(machine_.device(), bytes * static_cast<uint64_t>(capacity)), bytes, rows});
  return copied_.back().here.data();
}

void ShardSum::add_dense() {
  const std::span<std::byte> sums = to_.dense_gradients();
  if (sums.empty()) return;
  const tn_dtype dtype = machine_.options().compute;
  const auto elements = static_cast<int64_t>(sums.size() / tn_dtype_storage(dtype, 1));
  const OperandCall::Operand to = {dtype, sums.data()};
  const OperandCall::Operand from = {dtype, here(from_.dense_gradients().data(), sums.size())};
  calls_.push_back(OperandCall::over_grid(*machine_.device(), machine_.errors(), sum(), dtype, tn_dim_constant(1),
                                          tn_dim_constant(elements), {to, from}, {to}));
}

void ShardSum::add_rows(size_t number) {
  const SparseGradient &to = to_.sparse_gradient(number), &from = from_.sparse_gradient(number);
  Dim count = tn_dim_symbol(symbol_of(number));
  count.bound = from.capacity();
  const int64_t* const rows = &rows_of(number);
  void* const ids = here(from.rows().ids, sizeof(int64_t), from.capacity(), rows);
  void* const values = here(from.values(), to.row_bytes(), from.capacity(), rows);
  calls_.push_back(OperandCall::adding_rows(*machine_.device(), machine_.errors(), to.height(), to.width(), count,
                                            {to.dtype(), values}, ids, {to.dtype(), to.values(), &to.rows()}));
}

void ShardSum::merge_buffers() {
  const tn_dtype dtype = machine_.options().compute;
  for (const MergedBuffer& buffer : machine_.merged_buffers()) {
    if (buffer.merge == TN_MERGE_FIRST) continue;
    const OperandCall::Operand to = {dtype, to_.next_value(buffer.number)};
    const OperandCall::Operand from = {dtype, here(from_.next_value(buffer.number), buffer.bytes)};
    const OperandCall::Operand share = {dtype, control_.data() + kShareAt};
    calls_.push_back(OperandCall::over_grid(*machine_.device(), machine_.errors(), merged(buffer.merge), dtype,
                                            tn_dim_constant(1), tn_dim_constant(static_cast<int64_t>(buffer.count)),
                                            {to, from, share}, {to}));
  }
}

void ShardSum::put_control(double share) {
  machine_.access().write_by(control_.data(), control_.size(), [&](std::byte* at) {
    std::memset(at, 0, control_.size());
    const auto narrow = static_cast<float>(share);
    if (machine_.options().compute == TN_F64)
      std::memcpy(at + kShareAt, &share, sizeof share);
    else
      std::memcpy(at + kShareAt, &narrow, sizeof narrow);
    std::memcpy(at + kSymbolsAt, symbols_.data(), symbols_.size() * sizeof(int64_t));
  });
}

}  // namespace tenon::host
