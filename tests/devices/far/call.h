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
  // The stream of a call; null: the first one.
  Stream& stream_at(void* given) { return given == nullptr ? stream : *static_cast<Stream*>(given); }
};

// A copy of the operands of a call, with the addresses of the memory behind them: the host may change its own as soon
// as the call is enqueued.
class Operands {
 public:
  // sizes: of a call with TN_TRAIT_HOST_SIZES the number of symbols that it reads, of the host; 0: it reads those of
  // the device. Throws std::invalid_argument naming the operand that is not in the device's memory.
  Operands(const Memory& memory, const tn_execution& execution, const tn_call& call, size_t sizes);
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
  std::vector<int64_t> host_symbols_;
  const int64_t* symbols_;
  const tn_random* random_;
};

// What the functions of the device's tables set in `prepared`: runs `inner` later. `inner` is a call of the cpu, whose
// binding is taken, also on failure. sizes: as of Operands. traits: of the call.
void prepare_late(Device& device, const tn_prepared& inner, size_t sizes, uint32_t traits, tn_prepared* prepared);

}  // namespace tenon::far
