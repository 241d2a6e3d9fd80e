// Calls of the cpu's primitives as work of a stream. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "memory.h"
#include "stream.h"

namespace tenon::far {

struct Device {
  Memory memory;
  Stream stream;  // the first one; ends before the memory does
};

// A copy of the operands of a call, with the addresses of the memory behind them: the host may change its own as soon
// as the call is enqueued.
class Operands {
 public:
  // Throws std::invalid_argument naming the operand that is not in the device's memory.
  Operands(const Memory& memory, const tn_execution& execution, const tn_call& call);
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  [[nodiscard]] Failure run(const tn_prepared& prepared) const;

 private:
  template <typename T>
  [[nodiscard]] T* real(T* at, const std::string& name) const;
  tn_tensor* copy(const tn_tensor& tensor, const std::string& name);

  const Memory& memory_;
  std::deque<tn_tensor> tensors_;  // deques keep the addresses of their elements
  std::deque<std::vector<int64_t>> shapes_;
  std::deque<std::vector<int64_t*>> offsets_;
  std::deque<tn_ragged> ragged_;
  std::deque<tn_row_sparse> rows_;
  std::vector<const tn_tensor*> inputs_;
  std::vector<tn_tensor*> outputs_;
  std::vector<uint8_t> requests_;
  tn_call call_ = {};
  const int64_t* symbols_;
  const tn_random* random_;
};

// What the functions of the device's tables set in `prepared`: runs `inner` later. `inner` is a call of the cpu, whose
// binding is taken, also on failure.
void prepare_late(Device& device, const tn_prepared& inner, tn_prepared* prepared);

}  // namespace tenon::far
