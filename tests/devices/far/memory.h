// Memory that faults when the host touches it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace tenon::far {

// Two windows of addresses, one behind the other. The first one is what the device gives out: nothing is ever mapped
// there, so that whoever reads or writes it faults. Behind each of its addresses, at a constant distance, lies the
// memory itself, which only the work of the device's streams uses. Thread-safe.
class Memory {
 public:
  // Throws std::bad_alloc without room for the windows.
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Returns an address of the first window, aligned to a page; null without room. At least one byte is allocated.
  [[nodiscard]] void* allocate(uint64_t bytes);
  // What is still used faults from now on, in the device's own work, too.
  void release(void* memory);
  // Whether an address is one of the first window.
  [[nodiscard]] bool contains(const void* at) const;
  // Returns where the memory of an address of the first window is; of null null.
  template <typename T>
  [[nodiscard]] T* real(T* at) const {
    return at == nullptr ? nullptr : reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(at) + kWindow);
  }

 private:
  static constexpr uint64_t kWindow = uint64_t{1} << 36;

  uintptr_t base_ = 0;
  std::mutex mutex_;
  std::map<uintptr_t, uint64_t> used_;  // bytes by address, whole pages, each with a page behind it that stays closed
};

}  // namespace tenon::far
