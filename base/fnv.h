// FNV-1a (Fowler, Noll, Vo): stable between machines and versions, unlike std::hash.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon::base {

// Word: uint32_t or uint64_t.
template <typename Word>
[[nodiscard]] constexpr Word fnv1a(std::string_view text) {
  constexpr bool kWide = sizeof(Word) == 8;
  auto hash = static_cast<Word>(kWide ? 0xcbf29ce484222325u : 0x811c9dc5u);
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * static_cast<Word>(kWide ? 0x100000001b3u : 0x01000193u);
  return hash;
}

}  // namespace tenon::base
