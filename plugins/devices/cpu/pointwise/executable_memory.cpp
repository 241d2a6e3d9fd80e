// Executable memory, through AsmJit. SPDX-License-Identifier: Apache-2.0
#include "pointwise/executable_memory.h"

#include <cstring>
#include <utility>

#ifdef TENON_CPU_ASSEMBLES
#include <asmjit/core.h>

namespace tenon::cpu {

ExecutableMemory::ExecutableMemory(std::span<const std::byte> code) noexcept {
  namespace memory = asmjit::VirtMem;
  using memory::MemoryFlags;
  if (code.empty()) return;
  const size_t page = memory::info().pageSize;
  const size_t bytes = (code.size() + page - 1) / page * page;
  void* made = nullptr;
  if (memory::alloc(&made, bytes, MemoryFlags::kAccessRW) != asmjit::kErrorOk) return;
  std::memcpy(made, code.data(), code.size());
  if (memory::protect(made, bytes, MemoryFlags::kAccessRX) != asmjit::kErrorOk) {
    memory::release(made, bytes);
    return;
  }
  memory_ = made;
  bytes_ = bytes;
}

ExecutableMemory::~ExecutableMemory() {
  if (memory_ != nullptr) asmjit::VirtMem::release(memory_, bytes_);
}

}  // namespace tenon::cpu

#else

namespace tenon::cpu {

ExecutableMemory::ExecutableMemory(std::span<const std::byte>) noexcept {}
ExecutableMemory::~ExecutableMemory() = default;

}  // namespace tenon::cpu

#endif

namespace tenon::cpu {

ExecutableMemory::ExecutableMemory(ExecutableMemory&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

ExecutableMemory& ExecutableMemory::operator=(ExecutableMemory&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace tenon::cpu
