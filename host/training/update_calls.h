// The prepared calls of one update: an updater's program over parameters and their gradients.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/home.h"
#include "core/program.h"
#include "core/system.h"
#include "host/compile/operand_call.h"
#include "host/machine/update_target.h"
#include "host/plugins/device.h"
#include "host/training/updater_options.h"

namespace tenon::host {

using namespace core;

// A state (slot) of an updater: one float per element of each parameter (TN_FULL), per row of its first dimension, or
// per element of a row (TN_PER_COLUMN).
struct StateDeclaration {
  std::string name;
  double initial = 0;
  uint8_t extent = TN_FULL;
};

// The states of one slab, by state number: memory in the layout of StateLayout. Empty for slabs of buffers.
using SlabStates = std::vector<Home>;

// The layout of states: for each entry the floats of an extent, 64-byte aligned, in the slab's order; full states lie
// as the parameters do.
class StateLayout {
 public:
  explicit StateLayout(const ParameterSet& set);
  [[nodiscard]] uint64_t offset(size_t entry, uint8_t extent) const { return offsets_[extent][entry]; }  // in floats
  [[nodiscard]] uint64_t size(size_t slab, uint8_t extent) const { return sizes_[extent][slab]; }
  // A table whose rows lie with their owners has none here.
  static int64_t rows(const ParameterEntry& entry) {
    if (entry.table) return 0;
    return entry.shape.empty() ? 1 : entry.shape[0];
  }
  // The shape of the state of an entry.
  static std::vector<int64_t> shape(const ParameterEntry& entry, uint8_t extent);
  static uint64_t count(const ParameterEntry& entry, uint8_t extent);
  // The part of the memory of a state that belongs to entry number `number` of the set.
  [[nodiscard]] Home::Part part(const ParameterSet& set, size_t number, uint8_t extent) const;

 private:
  std::array<std::vector<uint64_t>, TN_FULL + 1> offsets_, sizes_;  // by extent
};

// The recorded program of an updater, with its states and options.
struct UpdatePlan {
  const Program& program;
  const std::vector<int32_t>& scalars;  // TN_SCALAR_*, kScalarClip: the program's last inputs
  const std::vector<StateDeclaration>& states;
  int32_t grain;
  double clip_norm;  // 0: off
  bool skips;        // steps with gradients that are not finite
};

// The calls that update the parameters of one target.
class UpdateCalls {
 public:
  // Prepares one call for each stretch of neighbouring parameters and each row-sparse gradient, for the parameters that
  // `used` contains. The calls work in place: outputs are the memory of the inputs.
  UpdateCalls(UpdateTarget& gradients, const UsedNames& used, const UpdatePlan& plan, std::vector<SlabStates>& states,
              ErrorSink& sink);

  // Whether the calls are bound to the target's present memory and to `used`.
  [[nodiscard]] bool is_for(const UpdateTarget& gradients, const UsedNames& used) const {
    return memory_id_ == gradients.memory_id() && used_ == used;
  }
  [[nodiscard]] bool is_empty() const { return runs_.empty() && sparse_.empty(); }
  [[nodiscard]] uint64_t workspace_bytes() const { return control_.size() + workspace_.size(); }
  // Returns false, and changes nothing, if the step is to be skipped.
  [[nodiscard]] bool run(UpdateTarget& gradients, double learning_rate, uint64_t step, ErrorSink& sink);
  // Of the last run: the rows that row-sparse gradients updated, and the bytes of parameters and states written.
  struct Written {
    uint64_t rows = 0, bytes = 0;
  };
  [[nodiscard]] Written written() const { return written_; }

 private:
  // The beginning of control_, which the calls read in device memory. The symbols and scalars follow.
  struct Control {
    tn_random random;
    float clip_factor;
  };
  struct Stretch {
    std::unique_ptr<OperandCall> call;
    Multipliers multipliers;
    double row_elements = 0;
  };
  void add_dense(UpdateTarget& gradients, const UpdatePlan& plan, std::vector<SlabStates>& states, ErrorSink& sink);
  void add_sparse(UpdateTarget& gradients, const SparseGradient& gradient, const UpdatePlan& plan,
                  std::vector<SlabStates>& states, ErrorSink& sink);
  // Returns the parameter and the states of a run of entries, given by their numbers in the set, as operands of the
  // call that changes them.
  std::vector<OperandCall::Operand> changed_by(UpdateTarget& gradients, const UpdatePlan& plan,
                                               std::vector<SlabStates>& states, const std::vector<size_t>& entries);
  std::vector<OperandCall::Operand> with_scalars(std::vector<OperandCall::Operand> inputs);
  void add_sums(Device& device, ErrorSink& sink);
  void add_clipping(Device& device, ErrorSink& sink, double limit);
  [[nodiscard]] bool is_finite(HostAccess& access) const;
  void lay_out(size_t stretches);
  void count_written(const int64_t* rows);  // [sparse_]
  [[nodiscard]] Control* control() const { return reinterpret_cast<Control*>(control_.data()); }
  static constexpr uint64_t kSymbolsAt = 64;
  static constexpr uint64_t kScalarBytes = 8;  // each scalar has the room of an int64
  static_assert(sizeof(Control) <= kSymbolsAt);

  std::shared_ptr<const MemoryId> memory_id_;
  UsedNames used_;
  std::vector<GradientRun> runs_;
  std::vector<const SparseGradient*> sparse_;
  // A scalar that the program reads: its TN_SCALAR_*, and its type: TN_F32 or TN_I64, by the kind of the input.
  struct Scalar {
    int32_t which;
    tn_dtype dtype;
  };
  std::vector<Scalar> scalars_;
  StateLayout layout_;
  // Numbers written per element, row and element of a row, by extent: the parameter itself and its states.
  std::array<uint64_t, TN_FULL + 1> states_ = {0, 0, 0, 1};
  bool host_sizes_ = false;                // a call reads sizes on the host
  uint64_t dense_bytes_ = 0;               // written by each run for dense gradients
  uint64_t scalars_at_ = 0, sums_at_ = 0;  // bytes into control_
  size_t next_scalar_ = 0;                 // used by the constructor
  std::vector<std::byte> staged_;          // Control, symbols and scalars, to copy to control_
  DeviceMemory control_;                   // Control, symbols, for each stretch its scalars, then the sums of squares
  struct Changed {
    Residence residence;
    Home::Part part;
  };
  std::vector<Changed> changed_;  // by the calls: parameters and states
  bool skips_ = false;
  std::vector<std::unique_ptr<OperandCall>> sums_;  // of the squares of each run and each row-sparse gradient
  std::unique_ptr<OperandCall> clipping_;           // makes the clipping factor of them; may be null
  std::vector<Stretch> stretches_;
  DeviceMemory workspace_;
  Written written_;
};

}  // namespace tenon::host
