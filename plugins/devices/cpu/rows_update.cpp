// "tenon.rows/1", update: a pointwise program over rows of tables. A block of rows is copied together into the cache,
// the program runs over it as over any dense grid, and what it wrote goes back to where it came from.
// SPDX-License-Identifier: Apache-2.0
#include "rows_update.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "cpu.h"
#include "prefetch.h"

namespace tenon::cpu {

namespace {

constexpr int64_t kTasks = 16;
constexpr int64_t kBlockBytes = 16384;  // of one operand
constexpr int64_t kMostBlockRows = 256;
constexpr uint64_t kLine = 64;
constexpr int32_t kBlockSymbol = 1;  // rows of the block at hand

uint64_t lines(uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
// An operand of the program: an input or an output.
struct Operand {
  bool indexed = false;
  int64_t row_bytes = 0;  // that it moves on by each row; 0: the same for all
  uint64_t stage = 0;     // indexed: its block within a task's memory
};

// What a task calls the program with; its own, so that tasks share nothing.
struct TaskCall {
  std::vector<tn_tensor> tensors;  // inputs, then outputs
  std::vector<const tn_tensor*> inputs;
  std::vector<tn_tensor*> outputs;
};

struct Update {
  int32_t rows_input = 0;
  int64_t block_rows = 1;
  std::vector<Operand> inputs, outputs;
  std::vector<TaskCall> tasks;
  tn_prepared program = {};  // over blocks
  uint64_t task_bytes = 0;   // the program's workspace, then the stages

  Update() { program.size = sizeof program; }
  ~Update() {
    if (program.destroy != nullptr && program.binding != nullptr) program.destroy(program.binding);
  }
  Update(const Update&) = delete;
  Update& operator=(const Update&) = delete;
};

struct Run {
  Update* update;
  const tn_execution* execution;
  const tn_call* call;
  const int64_t* ids;
  int64_t count, tasks;
  tn_status status[kTasks];
};

// Everything on the calling thread.
void one_after_another(void*, int64_t count, void (*task)(void*, int64_t, int32_t), void* argument) {
  for (int64_t i = 0; i < count; ++i) task(argument, i, 0);
}
constexpr tn_parallel kInline = {sizeof(tn_parallel), 1, nullptr, &one_after_another, nullptr};

// The output is computed where its input's block lies, when both are one table.
int64_t same_table(const Update& update, const tn_call& call, size_t output) {
  for (size_t i = 0; i < update.inputs.size(); ++i)
    if (update.inputs[i].indexed && call.inputs[i] != nullptr &&
        tn_data(call.inputs[i]) == tn_data(call.outputs[output]) &&
        update.inputs[i].row_bytes == update.outputs[output].row_bytes)
      return static_cast<int64_t>(i);
  return -1;
}

struct Block {
  const Run& run;
  TaskCall& task;
  uint8_t* memory;
  int64_t first, rows;

  [[nodiscard]] uint8_t* stage(const Operand& operand) const { return memory + operand.stage; }

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

// Blocks number `index`, `index` + tasks and so on, in memory of their own.
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

tn_status run(void* binding, const tn_execution* execution, const tn_call* call) {
  auto& update = *static_cast<Update*>(binding);
  const tn_errors* errors = execution->errors;
  if (call->inputs_count != update.inputs.size() || call->outputs_count != update.outputs.size())
    return tn_fail(errors, TN_MISUSE, nullptr, "an update of rows with another number of operands");
  const tn_tensor* rows_tensor = call->inputs[update.rows_input];
  if (rows_tensor == nullptr || rows_tensor->storage != TN_ROWS || rows_tensor->part == nullptr)
    return tn_fail(errors, TN_MISUSE, "inputs", "an update of rows without its rows");
  for (uint32_t i = 0; i < call->outputs_count; ++i)
    if (call->requests[i] == TN_REQUEST_ADD)
      return tn_fail(errors, TN_UNSUPPORTED, "outputs", "the cpu does not add updated rows");
  const auto& rows = *static_cast<const tn_rows*>(rows_tensor->part);
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

tn_status check(const tn_errors* errors, const tn_rows_update& given) {
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
                              const tn_rows_update* given, tn_prepared* prepared) try {
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
  const tn_status status = pointwise_table()->prepare(device, services, errors, &block, &update->program);
  if (status != TN_OK) return status;
  lay_out(*update);
  prepared->workspace_bytes = update->task_bytes * kTasks;
  prepared->run = &run;
  prepared->destroy = &destroy;
  prepared->binding = update.release();
  return TN_OK;
} catch (const std::bad_alloc&) {
  return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for an update of rows");
}

namespace {
constexpr tn_rows_table kTable = {sizeof(tn_rows_table), 0, &prepare_coalesce, &prepare_rows_update};
}  // namespace

const tn_rows_table* rows_table() { return &kTable; }

}  // namespace tenon::cpu
