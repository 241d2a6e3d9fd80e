// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace tenon::far {

namespace {

uint64_t page() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Memory::Memory() {
  void* const made = mmap(nullptr, 2 * kWindow, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) throw std::bad_alloc();
  base_ = reinterpret_cast<uintptr_t>(made);
}

Memory::~Memory() { munmap(reinterpret_cast<void*>(base_), 2 * kWindow); }

void* Memory::allocate(uint64_t bytes) {
  if (bytes > kWindow / 2) return nullptr;
  const uint64_t size = (std::max<uint64_t>(bytes, 1) + page() - 1) / page() * page();
  const std::lock_guard lock(mutex_);
  uintptr_t at = base_;  // the first gap that is large enough
  for (const auto& [begin, taken] : used_) {
    if (begin - at >= size + page()) break;
    at = begin + taken + page();
  }
  if (at + size + page() > base_ + kWindow) return nullptr;
  used_.emplace(at, size);
  if (mprotect(reinterpret_cast<void*>(at + kWindow), size, PROT_READ | PROT_WRITE) == 0)
    return reinterpret_cast<void*>(at);
  used_.erase(at);
  return nullptr;
}

void Memory::release(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(reinterpret_cast<uintptr_t>(memory));
  if (found == used_.end()) return;
  void* const at = reinterpret_cast<void*>(found->first + kWindow);
  madvise(at, found->second, MADV_DONTNEED);
  mprotect(at, found->second, PROT_NONE);
  used_.erase(found);
}

bool Memory::contains(const void* at) const {
  const auto address = reinterpret_cast<uintptr_t>(at);
  return address >= base_ && address < base_ + kWindow;
}

}  // namespace tenon::far
