// SPDX-License-Identifier: Apache-2.0
#include "host/compile/aligned_operands.h"

#include "core/alignment.h"

namespace tenon::host {

namespace {}  // namespace

bool AlignedOperands::is_aligned(const tn_tensor& tensor) { return tensor.alignment >= kCacheLine; }

uint64_t AlignedOperands::whole(uint64_t bytes) { return whole_lines(bytes); }

// The pointers of the call: to the given tensors, and to the copies of those that move.
void AlignedOperands::connect() {
  for (size_t i = 0; i < operands_.size(); ++i) {
    Operand& each = operands_[i];
    tn_tensor* const seen = each.moves ? &each.tensor : const_cast<tn_tensor*>(each.given);
    if (i < inputs_)
      input_pointers_.push_back(seen);
    else
      output_pointers_.push_back(seen);
  }
}

void AlignedOperands::bind(void* memory, const tn_call& call) {
  memory_ = static_cast<std::byte*>(memory);
  call_ = call;
  call_.inputs = input_pointers_.data();
  call_.outputs = output_pointers_.data();
}

void AlignedOperands::begin(HostAccess& access) {
  for (size_t i = 0; i < operands_.size(); ++i) {
    Operand& each = operands_[i];
    if (!each.moves) continue;
    each.tensor = *each.given;
    each.tensor.alignment = kCacheLine;
    const uint8_t* const from = tn_data(each.given);
    if (alignment_of(from) >= kCacheLine) continue;
    each.tensor.dl.data = memory_ + each.place;
    each.tensor.dl.byte_offset = 0;
    if (i < inputs_ || request(i) == TN_REQUEST_ADD) access.move(each.tensor.dl.data, from, bytes_of(each.tensor));
  }
}

void AlignedOperands::end(HostAccess& access) const {
  for (size_t i = inputs_; i < operands_.size(); ++i) {
    const Operand& each = operands_[i];
    if (!each.moves || request(i) == TN_REQUEST_NONE) continue;
    if (uint8_t* const to = tn_data(each.given); to != tn_data(&each.tensor))
      access.move(to, each.tensor.dl.data, bytes_of(each.tensor));
  }
}

}  // namespace tenon::host
