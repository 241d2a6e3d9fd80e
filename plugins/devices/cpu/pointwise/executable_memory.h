// Memory that holds machine code. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace tenon::cpu {

// Owns pages that are executable and no longer writable. Empty where the system grants none.
class ExecutableMemory {
 public:
  ExecutableMemory() = default;
  // Copies `code` into pages of its own.
  explicit ExecutableMemory(std::span<const std::byte> code) noexcept;
  ExecutableMemory(ExecutableMemory&& other) noexcept;
  ExecutableMemory& operator=(ExecutableMemory&& other) noexcept;
  ~ExecutableMemory();

  [[nodiscard]] bool empty() const { return memory_ == nullptr; }
  [[nodiscard]] void* at(size_t offset) const { return static_cast<std::byte*>(memory_) + offset; }

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace tenon::cpu
