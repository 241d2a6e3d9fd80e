// Operands of calls in the steps of loops, for kernels, providers and devices that need them aligned.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/plugins/host_access.h"

namespace tenon::host {

// The operands of a call without TN_TRAIT_ANY_ALIGNMENT, of which some are rows of a slab that may begin anywhere:
// while the call runs these are in memory of their own, behind the workspace of the call, where they begin at a cache
// line.
class AlignedOperands : base::NotCopied {
 public:
  // most(tensor): the most bytes of an operand. Borrows the tensors, which move from run to run.
  template <typename Most>
  AlignedOperands(const std::vector<const tn_tensor*>& inputs, const std::vector<tn_tensor*>& outputs, const Most& most)
      : inputs_(inputs.size()) {
    for (const tn_tensor* input : inputs) add(input, most);
    for (const tn_tensor* output : outputs) add(output, most);
    connect();
  }

  // Whether every operand is aligned at each run as it is.
  [[nodiscard]] bool are_all_aligned() const { return bytes_ == 0; }
  // Bytes of the memory for the operands.
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // Takes the memory, which begins at a cache line, and the call whose operands they are.
  void bind(void* memory, const tn_call& call);
  // Copies what the call reads, and makes operands().
  void begin(HostAccess& access);
  [[nodiscard]] const tn_call& operands() const { return call_; }
  // Copies what the call has written.
  void end(HostAccess& access) const;

 private:
  struct Operand {
    const tn_tensor* given = nullptr;  // null: absent
    tn_tensor tensor = {};             // as the call sees it
    bool moves = false;                // it may be anywhere
    uint64_t place = 0;                // of its memory
  };
  template <typename Most>
  void add(const tn_tensor* given, const Most& most) {
    Operand& made = operands_.emplace_back();
    made.given = given;
    if (given == nullptr || is_aligned(*given)) return;
    made.moves = true;
    made.place = bytes_;
    bytes_ += whole(most(*given));
  }
  [[nodiscard]] static bool is_aligned(const tn_tensor& tensor);
  [[nodiscard]] static uint64_t whole(uint64_t bytes);
  [[nodiscard]] uint8_t request(size_t operand) const { return call_.requests[operand - inputs_]; }
  void connect();

  std::vector<Operand> operands_;  // inputs, then outputs
  size_t inputs_ = 0;
  uint64_t bytes_ = 0;
  std::byte* memory_ = nullptr;
  std::vector<const tn_tensor*> input_pointers_;
  std::vector<tn_tensor*> output_pointers_;
  tn_call call_ = {};
};

}  // namespace tenon::host
