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

void ShardSum::start(double share) {
  reserve_rows();
  if (to_id_ != to_.memory_id() || from_id_ != from_.memory_id()) prepare();
  HostAccess& access = to_.access();
  for (const Copied& part : copied_) {
    const uint64_t bytes = part.rows == nullptr ? part.bytes : part.bytes * static_cast<uint64_t>(*part.rows);
    access.write_by(part.here.data(), bytes, [&](std::byte* at) { from_.access().read(at, part.from, bytes); });
  }
  put_control(share);
  tn_execution execution = to_.execution();
  execution.random = reinterpret_cast<const tn_random*>(control_.data());
  execution.symbols = reinterpret_cast<const int64_t*>(control_.data() + kSymbolsAt);
  execution.host_symbols = symbols_.data();
  const FloatingPointMode mode;
  for (const auto& call : calls_) call->run(execution, to_.errors());
}

// Counts the rows of `from`, and makes room for them.
void ShardSum::reserve_rows() {
  const auto& gradients = to_.model().sparse_gradients;
  symbols_.resize(TN_SYMBOL_FIRST_RAGGED + gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    rows_of(i) = from_.model().sparse_gradients[i]->count();
    to_.reserve_rows(*gradients[i], rows_of(i));
  }
}

void ShardSum::prepare() {
  const SharedObjects::Stream stream(to_.device()->shared(), &to_.access());
  to_id_.reset();
  calls_.clear();
  copied_.clear();
  control_ = DeviceMemory(to_.device(), kSymbolsAt + symbols_.size() * sizeof(int64_t));
  const ShardTerms terms = from_.terms();
  add_dense(terms);
  for (size_t i = 0; i < terms.row_sparse.size(); ++i) add_rows(i, terms.row_sparse[i]);
  merge_buffers(terms);
  std::vector<OperandCall*> calls;
  for (const auto& call : calls_) calls.push_back(call.get());
  workspace_ = shared_workspace(to_.device(), calls);
  to_id_ = to_.memory_id();
  from_id_ = from_.memory_id();
}

// Returns where calls on the device of the sum read what lies at `from` in the other shard's memory.
void* ShardSum::here(const void* from, uint64_t bytes, int64_t capacity, const int64_t* rows) {
  if (from_.device() == to_.device()) return const_cast<void*>(from);  // an input: calls do not write to it
  copied_.push_back({from, DeviceMemory(to_.device(), bytes * static_cast<uint64_t>(capacity)), bytes, rows});
  return copied_.back().here.data();
}

void ShardSum::add_dense(const ShardTerms& terms) {
  const std::vector<GradientRun> runs = gradient_runs(to_.model(), *to_.set(), UsedNames());
  for (size_t i = 0; i < runs.size(); ++i) {
    const tn_dtype dtype = runs[i].gradient_dtype;
    const OperandCall::Operand to = {dtype, const_cast<void*>(runs[i].gradients)};
    const OperandCall::Operand from = {dtype, here(terms.dense[i], tn_dtype_storage(dtype, runs[i].elements))};
    calls_.push_back(OperandCall::over_grid(*to_.device(), to_.errors(), sum(), to_.options().compute,
                                            tn_dim_constant(1), tn_dim_constant(static_cast<int64_t>(runs[i].elements)),
                                            {to, from}, {to}));
  }
}

void ShardSum::add_rows(size_t number, const ShardTerms::Rows& from) {
  const SparseGradient& to = *to_.model().sparse_gradients[number];
  Dim count = tn_dim_symbol(symbol_of(number));
  count.bound = from.capacity;
  const int64_t* const rows = &rows_of(number);
  void* const ids = here(from.ids, sizeof(int64_t), from.capacity, rows);
  void* const values = here(from.values, to.row_bytes(), from.capacity, rows);
  calls_.push_back(OperandCall::adding_rows(*to_.device(), to_.errors(), to.height(), to.width(), count,
                                            {to.dtype(), values}, ids, {to.dtype(), to.values(), &to.rows()}));
}

void ShardSum::merge_buffers(const ShardTerms& terms) {
  const tn_dtype dtype = to_.options().compute;
  const std::vector<BufferUse>& uses = to_.model().lowered.buffers;
  for (size_t i = 0; i < uses.size(); ++i) {
    const ParameterEntry& entry = to_.set()->find(uses[i].name);
    const bool kept = uses[i].next == kNoValue || to_.options().is_immutable(uses[i].name);
    if (kept || entry.merge == TN_MERGE_FIRST || entry.count == 0) continue;
    const OperandCall::Operand to = {dtype, to_.model().calls->memory(uses[i].next)};
    const OperandCall::Operand from = {dtype, here(terms.buffers[i], tn_dtype_storage(dtype, entry.count))};
    const OperandCall::Operand share = {dtype, control_.data() + kShareAt};
    calls_.push_back(OperandCall::over_grid(*to_.device(), to_.errors(), merged(entry.merge), dtype, tn_dim_constant(1),
                                            tn_dim_constant(static_cast<int64_t>(entry.count)), {to, from, share},
                                            {to}));
  }
}

void ShardSum::put_control(double share) {
  to_.access().write_by(control_.data(), control_.size(), [&](std::byte* at) {
    std::memset(at, 0, control_.size());
    const auto narrow = static_cast<float>(share);
    if (to_.options().compute == TN_F64)
      std::memcpy(at + kShareAt, &share, sizeof share);
    else
      std::memcpy(at + kShareAt, &narrow, sizeof narrow);
    std::memcpy(at + kSymbolsAt, symbols_.data(), symbols_.size() * sizeof(int64_t));
  });
}

}  // namespace tenon::host
