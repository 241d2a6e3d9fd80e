// "tenon.row_sparse/1", update: a pointwise program over indexed rows of tables. The rows of a block are gathered into
// contiguous memory in the cache, the program runs over them as over a dense grid, and its outputs are scattered back.
// SPDX-License-Identifier: Apache-2.0
#include "rows_update.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "prefetch.h"
#include "primitives.h"

namespace tenon::cpu {

namespace {

constexpr int64_t kTasks = 16;          // at most
constexpr int64_t kBlockBytes = 16384;  // of a FULL operand of float32 in a block
constexpr int64_t kMostBlockRows = 256;
constexpr uint64_t kLine = 64;       // bytes of a cache line
constexpr int32_t kBlockSymbol = 1;  // number of the symbol "rows of the current block"

// Rounds up to whole cache lines.
uint64_t lines(uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
// An operand of the program: an input or an output. A table if indexed.
struct Operand {
  bool indexed = false;
  int64_t row_bytes = 0;  // bytes of a row; 0: one value for all rows
  uint64_t stage = 0;     // indexed: offset in bytes of its stage, [block_rows] rows, within a task's memory
};

// The operands of a task's calls of the program. Each task has its own, so that tasks share no memory that they write.
// Since they belong to the binding, it must not run twice at once.
struct TaskCall {
  std::vector<tn_tensor> tensors;  // inputs, then outputs
  std::vector<const tn_tensor*> inputs;
  std::vector<tn_tensor*> outputs;
};

// A prepared call.
struct Update {
  int32_t rows_input = 0;  // number of the program's input that is the TN_ROW_SPARSE tensor
  int64_t block_rows = 1;  // most rows of a block
  std::vector<Operand> inputs, outputs;
  std::vector<TaskCall> tasks;
  tn_prepared program = {};  // the program, prepared for a grid of one block
  uint64_t task_bytes = 0;   // of a task's memory: the program's workspace, then the stages

  Update() { program.size = sizeof program; }
  ~Update() {
    if (program.destroy != nullptr && program.binding != nullptr) program.destroy(program.binding);
  }
  Update(const Update&) = delete;
  Update& operator=(const Update&) = delete;
};

// One run, shared by its tasks. Row r of the grid is row ids[r] of the tables.
struct Run {
  Update* update;
  const tn_execution* execution;
  const tn_call* call;
  const int64_t* ids;  // [count]
  int64_t count, tasks;
  tn_status status[kTasks];  // of each task
};

// Runs the tasks of a nested call on the calling thread: the blocks are tasks already.
void one_after_another(void*, int64_t count, void (*task)(void*, int64_t, int32_t), void* argument) {
  for (int64_t i = 0; i < count; ++i) task(argument, i, 0);
}
constexpr tn_parallel kInline = {sizeof(tn_parallel), 1, nullptr, &one_after_another, nullptr};

// Returns the number of the indexed input that is the same table as the output, or -1. The output is then computed in
// place, in the stage of that input.
int64_t same_table(const Update& update, const tn_call& call, size_t output) {
  for (size_t i = 0; i < update.inputs.size(); ++i)
    if (update.inputs[i].indexed && call.inputs[i] != nullptr &&
        tn_data(call.inputs[i]) == tn_data(call.outputs[output]) &&
        update.inputs[i].row_bytes == update.outputs[output].row_bytes)
      return static_cast<int64_t>(i);
  return -1;
}

// Rows [first, first + rows) of the grid.
struct Block {
  const Run& run;
  TaskCall& task;
  uint8_t* memory;  // the task's
  int64_t first, rows;

  [[nodiscard]] uint8_t* stage(const Operand& operand) const { return memory + operand.stage; }

  // Points the task's operands at the block. A table [height, row_bytes] is gathered into its stage [rows, row_bytes]
  // by ids [rows]; an operand that is not indexed is read and written in place.
  void fetch() const {
    const Update& update = *run.update;
    for (size_t i = 0; i < update.inputs.size(); ++i) {
      const Operand& operand = update.inputs[i];
      if (run.call->inputs[i] == nullptr) continue;
      uint8_t* from = tn_data(run.call->inputs[i]);
      if (!operand.indexed) {
        task.tensors[i].dl.data = from + first * operand.row_bytes;
        continue;
      }
      uint8_t* to = stage(operand);
      task.tensors[i].dl.data = to;
      for (int64_t r = 0; r < rows; ++r) {
        if (r + kAhead < rows) prefetch(from + run.ids[first + r + kAhead] * operand.row_bytes, operand.row_bytes);
        std::memcpy(to + r * operand.row_bytes, from + run.ids[first + r] * operand.row_bytes,
                    static_cast<size_t>(operand.row_bytes));
      }
    }
    for (size_t o = 0; o < update.outputs.size(); ++o) {
      const Operand& operand = update.outputs[o];
      tn_tensor& tensor = task.tensors[update.inputs.size() + o];
      if (run.call->outputs[o] == nullptr) continue;
      if (!operand.indexed) {
        tensor.dl.data = tn_data(run.call->outputs[o]) + first * operand.row_bytes;
        continue;
      }
      const int64_t input = same_table(update, *run.call, o);
      tensor.dl.data = stage(input < 0 ? operand : update.inputs[static_cast<size_t>(input)]);
    }
  }

  // Scatters the stages [rows, row_bytes] of indexed outputs to rows ids [rows] of their tables. The ids are distinct,
  // so tasks write different rows.
  void put_back() const {
    const Update& update = *run.update;
    for (size_t o = 0; o < update.outputs.size(); ++o) {
      const Operand& operand = update.outputs[o];
      if (!operand.indexed || run.call->outputs[o] == nullptr) continue;
      uint8_t* to = tn_data(run.call->outputs[o]);
      const auto* from = static_cast<const uint8_t*>(task.tensors[update.inputs.size() + o].dl.data);
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(to + run.ids[first + r] * operand.row_bytes, from + r * operand.row_bytes,
                    static_cast<size_t>(operand.row_bytes));
    }
  }
};

// Task `index`: runs the blocks index, index + tasks, index + 2 * tasks, ... in the task's own part of the workspace.
void run_blocks(void* argument, int64_t index, int32_t) {
  Run& run = *static_cast<Run*>(argument);
  Update& update = *run.update;
  TaskCall& task = update.tasks[static_cast<size_t>(index)];
  uint8_t* memory = static_cast<uint8_t*>(run.call->workspace) + static_cast<uint64_t>(index) * update.task_bytes;
  int64_t symbols[2] = {0, 0};
  tn_execution execution = *run.execution;
  execution.size = sizeof execution;
  execution.symbols = symbols;
  execution.parallel = &kInline;
  tn_call call = *run.call;
  call.size = sizeof call;
  call.inputs = task.inputs.data();
  call.outputs = task.outputs.data();
  call.workspace = memory;
  for (int64_t first = index * update.block_rows; first < run.count; first += run.tasks * update.block_rows) {
    const Block block = {run, task, memory, first, std::min(update.block_rows, run.count - first)};
    symbols[kBlockSymbol] = block.rows;
    block.fetch();
    run.status[index] = update.program.run(update.program.binding, &execution, &call);
    if (run.status[index] != TN_OK) return;
    block.put_back();
  }
}

// inputs and outputs are those of the program, with count rows. The TN_ROW_SPARSE input number rows_input has ids
// [count] and values [count, columns]; tables are [height, columns] if FULL, [height] if PER_ROW.
tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  auto& update = *static_cast<Update*>(binding);
  const tn_errors* errors = execution->errors;
  if (call->inputs_count != update.inputs.size() || call->outputs_count != update.outputs.size())
    return tn_fail(errors, TN_MISUSE, nullptr, "an update of rows with another number of operands");
  const tn_tensor* rows_tensor = call->inputs[update.rows_input];
  if (rows_tensor == nullptr || rows_tensor->storage != TN_ROW_SPARSE || rows_tensor->part == nullptr)
    return tn_fail(errors, TN_MISUSE, "inputs", "an update of rows without its rows");
  for (uint32_t i = 0; i < call->outputs_count; ++i)
    if (call->requests[i] == TN_REQUEST_ADD)
      return tn_fail(errors, TN_UNSUPPORTED, "outputs", "the cpu does not add updated rows");
  const auto& rows = *static_cast<const tn_row_sparse*>(rows_tensor->part);
  Run run = {&update, execution, call, rows.ids, *rows.count, 1, {}};
  if (run.count < 0 || run.count > rows.capacity)
    return tn_fail(errors, TN_MISUSE, "inputs", "an update of more rows than fit");
  run.tasks = std::clamp<int64_t>((run.count + update.block_rows - 1) / update.block_rows, 1, kTasks);
  execution->parallel->for_each(execution->parallel->self, run.tasks, &run_blocks, &run);
  for (const tn_status status : run.status)
    if (status != TN_OK) return status;
  return TN_OK;
}

void destroy(void* binding) { delete static_cast<Update*>(binding); }

// Refuses programs whose values in a block depend on other rows or on the position of the block: draws, row indices,
// and reductions over rows.
tn_status check(const tn_errors* errors, const tn_row_sparse_update& given) {
  const tn_program& program = *given.site->program;
  const auto bad = [&](const char* why) { return tn_fail(errors, TN_UNSUPPORTED, "program", why); };
  if (given.site->columns.symbol != TN_SYMBOL_NONE) return bad("an update of rows needs rows of constant length");
  if (given.rows < 0 || static_cast<uint32_t>(given.rows) >= program.inputs_count)
    return bad("an update of rows without rows");
  for (uint32_t i = 0; i < program.instructions_count; ++i) {
    const tn_instruction& in = program.instructions[i];
    const uint8_t op_class = tn_op_info(in.op).op_class;
    if (op_class == TN_CLASS_RANDOM || in.op == TN_OP_ROW)
      return bad("an update of rows cannot tell the number of a row");
    if (op_class == TN_CLASS_REDUCTION && given.site->extents[i] != TN_PER_ROW)
      return bad("an update of rows can reduce along a row alone");
  }
  return TN_OK;
}

Operand operand_of(uint8_t extent, tn_dtype dtype, bool indexed, int64_t columns) {
  Operand operand;
  operand.indexed = indexed;
  const int64_t element = tn_dtype_bytes(dtype);
  operand.row_bytes = extent == TN_FULL ? columns * element : extent == TN_PER_ROW ? element : 0;
  return operand;
}

// Sets the stages of indexed operands and task_bytes, and builds the operand lists of the tasks.
void lay_out(Update& update) {
  update.task_bytes = lines(update.program.workspace_bytes);
  for (auto* list : {&update.inputs, &update.outputs})
    for (Operand& operand : *list) {
      if (!operand.indexed) continue;
      operand.stage = update.task_bytes;
      update.task_bytes += lines(static_cast<uint64_t>(operand.row_bytes * update.block_rows));
    }
  update.tasks.resize(kTasks);
  for (TaskCall& task : update.tasks) {
    task.tensors.resize(update.inputs.size() + update.outputs.size());
    for (size_t i = 0; i < task.tensors.size(); ++i) {
      task.tensors[i].size = sizeof(tn_tensor);
      if (i < update.inputs.size())
        task.inputs.push_back(&task.tensors[i]);
      else
        task.outputs.push_back(&task.tensors[i]);
    }
  }
}

}  // namespace

tn_status prepare_rows_update(void* device, const tn_services* services, const tn_errors* errors,
                              const tn_row_sparse_update* given, tn_prepared* prepared) try {
  if (const tn_status status = check(errors, *given); status != TN_OK) return status;
  const tn_pointwise_site& site = *given->site;
  const int64_t columns = site.columns.offset;
  auto update = std::make_unique<Update>();
  update->rows_input = given->rows;
  for (uint32_t i = 0; i < site.program->inputs_count; ++i)
    update->inputs.push_back(
        operand_of(site.program->inputs[i].extent, site.inputs[i], given->indexed_inputs[i] != 0, columns));
  for (uint32_t i = 0; i < site.program->outputs_count; ++i) {
    const uint8_t extent = site.extents[site.program->outputs[i].value];
    update->outputs.push_back(operand_of(extent, site.outputs[i], given->indexed_outputs[i] != 0, columns));
    if (extent != TN_FULL && extent != TN_PER_ROW)
      return tn_fail(errors, TN_UNSUPPORTED, "program", "an update of rows writes rows alone");
  }
  update->block_rows = std::clamp<int64_t>(kBlockBytes / std::max<int64_t>(columns * 4, 1), 1, kMostBlockRows);
  tn_pointwise_site block = site;
  block.size = sizeof block;
  block.rows = tn_dim_symbol(kBlockSymbol);
  block.rows.bound = update->block_rows;
  const tn_status status = pointwise_table.prepare(device, services, errors, &block, &update->program);
  if (status != TN_OK) return status;
  lay_out(*update);
  prepared->workspace_bytes = update->task_bytes * kTasks;
  prepared->traits = portable_trait(services);
  prepared->run = &run;
  prepared->destroy = &destroy;
  prepared->binding = update.release();
  return TN_OK;
} catch (const std::bad_alloc&) {
  return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for an update of rows");
}

}  // namespace tenon::cpu
