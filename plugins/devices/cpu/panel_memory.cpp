// SPDX-License-Identifier: Apache-2.0
#include "panel_memory.h"

#include <atomic>
#include <cstdlib>

namespace tenon::cpu {

namespace {

constexpr size_t kMostIdle = 64;
std::atomic<uint8_t*> idle_blocks[kMostIdle];

// The first place at which a thread looks for a block: another one for each stack.
size_t first_place() {
  const int here = 0;
  return (reinterpret_cast<uintptr_t>(&here) >> 16U) % kMostIdle;
}

}  // namespace

PanelMemory::PanelMemory(bool is_needed) {
  if (!is_needed) return;
  const size_t first = first_place();
  for (size_t i = 0; i < kMostIdle; ++i) {
    std::atomic<uint8_t*>& idle = idle_blocks[(first + i) % kMostIdle];
    if (idle.load(std::memory_order_relaxed) == nullptr) continue;
    data_ = idle.exchange(nullptr, std::memory_order_acquire);
    if (data_ != nullptr) return;
  }
  data_ = static_cast<uint8_t*>(std::aligned_alloc(64, static_cast<size_t>(kPanelMemory)));
}

PanelMemory::~PanelMemory() {
  if (data_ == nullptr) return;
  const size_t first = first_place();
  for (size_t i = 0; i < kMostIdle; ++i) {
    uint8_t* nothing = nullptr;
    if (idle_blocks[(first + i) % kMostIdle].compare_exchange_strong(nothing, data_, std::memory_order_release)) return;
  }
  std::free(data_);
}

}  // namespace tenon::cpu
