// When the calls of a backward have written a part of memory for the last time. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::host {

// Call number `calls` - 1 writes the bytes [first, end) of a section of memory.
struct SectionWrite {
  size_t calls;
  uint64_t first, end;
};

// A part of the section that is final when so many calls have run: no later one writes to it.
struct FinalPart {
  size_t calls;
  uint64_t offset, bytes;
  bool operator==(const FinalPart&) const = default;
};

// Cuts a section of so many bytes into parts, those that are final first in front. What no call writes, such as the
// padding behind a value, belongs to what is before it.
[[nodiscard]] std::vector<FinalPart> final_parts(const std::vector<SectionWrite>& writes, uint64_t bytes);

}  // namespace tenon::host
