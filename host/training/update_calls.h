// The prepared calls of one update: an updater's program over the parameters of one machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/seams.h"
#include "host/machine/machine.h"
#include "host/plugins/device.h"
#include "host/training/updater_options.h"

namespace tenon {

// What an updater keeps beside each parameter: one float per element, or per row of the parameter's first dimension.
struct SlotDeclaration {
  std::string name;
  double initial = 0;
  bool per_row = false;
};

// One slab's worth of slots: slot number -> memory in the layout of the slab, of rows in that of RowLayout. Empty for
// slabs of buffers.
using SlabSlots = std::vector<Buffer>;

// Where slots per row lie: for each entry one float for each of its rows, 64-byte aligned, in the order of the slab.
class RowLayout {
 public:
  explicit RowLayout(const ParameterSet& set);
  [[nodiscard]] uint64_t offset(size_t entry) const { return offsets_[entry]; }  // in floats
  [[nodiscard]] uint64_t size(size_t slab) const { return sizes_[slab]; }
  static int64_t rows(const ParameterEntry& entry) { return entry.shape.empty() ? 1 : entry.shape[0]; }

 private:
  std::vector<uint64_t> offsets_, sizes_;
};

// A prepared call with operands of its own.
class OperandCall {
 public:
  struct Operand {
    tn_dtype dtype;
    void* data;
    const tn_rows* rows = nullptr;  // not null: a TN_ROWS tensor
  };
  OperandCall(const OperandCall&) = delete;
  OperandCall& operator=(const OperandCall&) = delete;

  // The program over a grid in memory, rows by columns.
  static std::unique_ptr<OperandCall> over_grid(Device& device, ErrorSink& sink, const Program& program,
                                                const Dim& rows, const Dim& columns, const std::vector<Operand>& inputs,
                                                const std::vector<Operand>& outputs);
  // The same over the rows that input 1 has: all other inputs and outputs that are not scalars lie in tables.
  static std::unique_ptr<OperandCall> over_rows(Device& device, ErrorSink& sink, const Program& program,
                                                int64_t capacity, int64_t width, const std::vector<Operand>& inputs,
                                                const std::vector<Operand>& outputs);

  [[nodiscard]] uint64_t workspace_bytes() const { return prepared_->workspace_bytes; }
  void set_workspace(void* memory) { call_.workspace = memory; }
  void run(const tn_execution& execution, ErrorSink& sink) const { sink.check(prepared_.run(execution, call_)); }

 private:
  OperandCall(const Device& device, const std::vector<Operand>& inputs, const std::vector<Operand>& outputs);

  Prepared prepared_;
  std::vector<tn_tensor> tensors_;  // inputs, then outputs
  std::vector<const tn_tensor*> inputs_;
  std::vector<tn_tensor*> outputs_;
  std::vector<uint8_t> requests_;
  tn_call call_ = {};
};

// What an update works on, and with.
struct UpdatePlan {
  const Program& program;
  const std::vector<int32_t>& scalars;  // TN_SCALAR_*, kScalarClip: the program's last inputs
  const std::vector<SlotDeclaration>& slots;
  int32_t grain;
  double clip_norm;  // 0: none
};

class UpdateCalls {
 public:
  // Prepares one call for each stretch of neighbouring parameters and each gradient by rows, of those that `used`
  // contains, in place: outputs are the memory of the inputs.
  UpdateCalls(Machine& machine, const UsedNames& used, const UpdatePlan& plan, const std::vector<SlabSlots>& slots,
              ErrorSink& sink);

  // Whether the calls are bound to the machine's memory as it lies now.
  [[nodiscard]] bool is_for(const Machine& machine, const UsedNames& used) const {
    return memory_id_ == machine.memory_id() && used_ == used;
  }
  [[nodiscard]] bool is_empty() const { return runs_.empty() && sparse_.empty(); }
  [[nodiscard]] uint64_t workspace_bytes() const { return control_.size() + workspace_.size(); }
  void run(Machine& machine, double learning_rate, uint64_t step, ErrorSink& sink);
  // Of the last run: rows that were updated where gradients are rows, and bytes of parameters and slots written.
  struct Written {
    uint64_t rows = 0, bytes = 0;
  };
  [[nodiscard]] Written written() const { return written_; }

 private:
  // What the calls read through device memory, before the symbols and the scalars.
  struct Control {
    tn_random random;
    float clip_factor;
  };
  struct Stretch {
    std::unique_ptr<OperandCall> call;
    Multipliers multipliers;
    double row_elements = 0;
  };
  void add_dense(Machine& machine, const UpdatePlan& plan, const std::vector<SlabSlots>& slots, ErrorSink& sink);
  void add_sparse(Machine& machine, const SparseGradient& gradient, const UpdatePlan& plan,
                  const std::vector<SlabSlots>& slots, ErrorSink& sink);
  std::vector<OperandCall::Operand> with_scalars(std::vector<OperandCall::Operand> inputs);
  void add_clipping(Device& device, ErrorSink& sink, double limit);
  void lay_out(size_t stretches);
  void share_workspace(const std::shared_ptr<Device>& device);
  void count_written();
  [[nodiscard]] Control* control() const { return reinterpret_cast<Control*>(control_.data()); }
  static constexpr uint64_t kSymbolsAt = 64;
  static_assert(sizeof(Control) <= kSymbolsAt);

  std::shared_ptr<const MemoryId> memory_id_;
  UsedNames used_;
  std::vector<GradientRun> runs_;
  std::vector<const SparseGradient*> sparse_;
  std::vector<int32_t> scalars_;
  RowLayout layout_;
  std::vector<SlotDeclaration> slots_;
  uint64_t scalars_at_ = 0, sums_at_ = 0;  // bytes into control_
  size_t next_scalar_ = 0;                 // while it is built
  std::vector<std::byte> staged_;          // Control, symbols and scalars, as they go to the device
  DeviceMemory control_;                   // Control, symbols, for each stretch its scalars, then the sums of squares
  std::vector<std::unique_ptr<OperandCall>> clipping_;
  std::vector<Stretch> stretches_;
  DeviceMemory workspace_;
  Written written_;
};

}  // namespace tenon
