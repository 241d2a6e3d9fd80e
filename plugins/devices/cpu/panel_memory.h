// Memory for the copies of a tile of a product: on the heap, so that threads with small stacks can compute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::cpu {

// Bytes of a block, aligned to a cache line.
inline constexpr int64_t kPanelMemory = int64_t{128} << 10;

// One block, until it is destroyed. Blocks are shared by all hosts in the process and used again; one is allocated
// where all are in use. A thread gets the block again that it had before, unless another one took it meanwhile.
class PanelMemory {
 public:
  // is_needed: false: no block.
  explicit PanelMemory(bool is_needed = true);
  ~PanelMemory();
  PanelMemory(const PanelMemory&) = delete;
  PanelMemory& operator=(const PanelMemory&) = delete;

  // Null if there is no memory for it, or if it is not needed.
  [[nodiscard]] uint8_t* data() const { return data_; }

 private:
  uint8_t* data_ = nullptr;
};

}  // namespace tenon::cpu
