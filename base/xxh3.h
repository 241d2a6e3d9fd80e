// XXH3, which finds damage at the speed of memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace tenon::base {

// XXH3 with 128 bits and seed 0 (xxhash.com): detects damage at the speed of memory.
class Xxh3 {
 public:
  Xxh3() { XXH3_128bits_reset(&state_); }
  void update(const void* data, uint64_t bytes) {
    if (bytes != 0) XXH3_128bits_update(&state_, data, bytes);
  }
  // In lower-case hex, the high half first. Called once.
  [[nodiscard]] std::string finish() {
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
    char hex[33];
    static_cast<void>(std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                                    static_cast<unsigned long long>(hash.low64)));
    return hex;
  }

 private:
  XXH3_state_t state_;
};

}  // namespace tenon::base
