// The prepared calls of one update: an updater's program over the parameters of one machine. SPDX-License-Identifier:
// Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "core/program.h"
#include "core/seams.h"
#include "host/device.h"
#include "host/machine.h"
#include "host/updater_options.h"

namespace tenon {

// One slab's worth of slots: slot number -> memory in the layout of the slab. Empty for slabs of buffers.
using SlabSlots = std::vector<Buffer>;

// A pointwise program over flat memory: what is FULL has `elements` elements, all else one.
class FlatCall {
 public:
  struct Operand {
    tn_dtype dtype;
    void* data;
  };
  FlatCall(Device& device, ErrorSink& sink, const Program& program, int64_t elements,
           const std::vector<Operand>& inputs, const std::vector<Operand>& outputs);
  FlatCall(const FlatCall&) = delete;
  FlatCall& operator=(const FlatCall&) = delete;

  [[nodiscard]] uint64_t workspace_bytes() const { return prepared_->workspace_bytes; }
  void set_workspace(void* memory) { call_.workspace = memory; }
  void run(const tn_execution& execution, ErrorSink& sink) const { sink.check(prepared_.run(execution, call_)); }

 private:
  int64_t elements_;
  int64_t one_ = 1;
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
  int32_t grain;
  double clip_norm;  // 0: none
};

class UpdateCalls {
 public:
  // Prepares one call for each stretch of `runs`, in place: outputs are the memory of the inputs.
  UpdateCalls(Machine& machine, std::vector<GradientRun> runs, const UpdatePlan& plan,
              const std::vector<SlabSlots>& slots, ErrorSink& sink);

  [[nodiscard]] bool is_for(const std::vector<GradientRun>& runs) const;
  [[nodiscard]] uint64_t workspace_bytes() const { return control_.size() + workspace_.size(); }
  void run(Machine& machine, double learning_rate, uint64_t step, ErrorSink& sink);

 private:
  // What the calls read through device memory.
  struct Control {
    int64_t symbols[2];
    tn_random random;
    float clip_factor;
  };
  struct Stretch {
    std::unique_ptr<FlatCall> call;
    double rate_multiplier = 1, decay_multiplier = 1;
  };
  void add_clipping(Device& device, ErrorSink& sink, double limit);
  float* device_scalars() const { return reinterpret_cast<float*>(control_.data() + kScalarsAt); }
  static constexpr uint64_t kScalarsAt = 64;
  static_assert(sizeof(Control) <= kScalarsAt);

  std::vector<GradientRun> runs_;  // what it was made for
  std::vector<int32_t> scalars_;
  std::vector<std::byte> staged_;  // Control and the scalars, as they go to the device
  DeviceMemory control_;           // Control, then for each stretch its scalars, then for each run a sum of squares
  std::vector<std::unique_ptr<FlatCall>> clipping_;
  std::vector<Stretch> stretches_;
  DeviceMemory workspace_;
};

}  // namespace tenon
