// Turns the passes of a program into code, and lays out the memory of its calls. SPDX-License-Identifier: Apache-2.0
#include "pointwise/generate_code.h"

#include <algorithm>

#include "pointwise/compile.h"

namespace tenon::cpu {

void Code::find_moving() {
  for (size_t i = 0; i < cursors.size(); ++i) {
    if (cursors[i].moves == Moves::kBlock) block_cursors.push_back(static_cast<int32_t>(i));
    if (cursors[i].moves == Moves::kTile) tile_cursors.push_back(static_cast<int32_t>(i));
  }
}

void Code::number_memories(uint32_t inputs_count) {
  for (Cursor& cursor : cursors) {
    if (cursor.home == Home::kShared) cursor.memory = 0;
    if (cursor.home == Home::kConstant) cursor.memory = 1;
    if (cursor.home == Home::kInput) cursor.memory = 2 + cursor.index;
    if (cursor.home == Home::kOutput) cursor.memory = 2 + static_cast<int32_t>(inputs_count) + cursor.index;
  }
}

Binding generate(const tn_pointwise_site& site, Isa isa, FunctionCache* functions, tn_dtype* missing,
                 const Chunks& chunks) {
  *missing = TN_COMPUTE;
  const Schedule plan = schedule(site);
  Binding binding;
  binding.rows = site.rows;
  binding.columns = site.columns;
  binding.wide = site.compute == TN_F64;
  binding.inputs_count = site.program->inputs_count;
  binding.outputs_count = site.program->outputs_count;
  // Shared memory: one byte for each output (mark_direct), the table of memories, the results of reductions, then
  // memory that all passes reuse.
  binding.memories = round_up(static_cast<int64_t>(binding.outputs_count), 64);
  const int64_t memories = 2 + int64_t{binding.inputs_count} + int64_t{binding.outputs_count};
  int64_t shared = binding.memories + round_up(memories * static_cast<int64_t>(sizeof(uintptr_t)), 64);
  for (const Result& result : plan.results) {
    binding.results.push_back(shared);
    binding.result_extents.push_back(result.extent);
    shared += result.extent == TN_PER_COLUMN ? round_up(site.columns.offset * 8, 64) : 64;
  }
  binding.shared_bytes = shared;
  int64_t most = shared;
  bool made = false;  // the rows that another primitive computes
  for (const Pass& pass : plan.passes) {
    const bool makes = pass.grid == Grid::kFull && !made;
    made |= makes;
    binding.passes.push_back(generate_pass(site, isa, pass, makes ? chunks : Chunks(), binding, missing));
    most = std::max(most, binding.passes.back().shared_bytes);
  }
  if (functions != nullptr && is_complete(binding)) binding.functions = compile(binding.passes, *functions);
  for (Code& code : binding.passes) {
    code.find_moving();
    code.number_memories(binding.inputs_count);
    for (const Cursor& cursor : code.cursors)
      if (cursor.home == Home::kInput) binding.inputs_read.push_back(cursor.index);
    binding.scratch_bytes = std::max(binding.scratch_bytes, code.scratch_bytes + round_up(cursor_bytes(code), 64));
  }
  std::sort(binding.inputs_read.begin(), binding.inputs_read.end());
  binding.inputs_read.erase(std::unique(binding.inputs_read.begin(), binding.inputs_read.end()),
                            binding.inputs_read.end());
  binding.shared_bytes = round_up(most, 64);
  // Scratch for as many workers as there are chunks, at most 64, and at most 16 MiB in all unless that is less than 8
  // of them.
  int64_t tasks = 1;
  for (const Code& code : binding.passes)
    tasks = std::max(tasks, code.flat ? code.most_chunks : code.most_row_chunks * column_chunks(code));
  const int64_t affordable = std::max<int64_t>((int64_t{1} << 24) / std::max<int64_t>(binding.scratch_bytes, 1), 8);
  binding.workers = static_cast<int32_t>(std::min({tasks, affordable, int64_t{64}}));
  return binding;
}

bool is_complete(const Binding& binding) {
  for (const Code& code : binding.passes)
    for (const auto* calls : {&code.scalar_calls, &code.column_calls, &code.row_calls, &code.tile_calls})
      for (const Call& call : *calls)
        if (call.kernel == nullptr) return false;
  return true;
}

}  // namespace tenon::cpu
