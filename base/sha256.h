// SHA-256, as lists of names, plugin sets and records of trainings state it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sodium/crypto_hash_sha256.h>

#include <cstdint>
#include <string>

namespace tenon::base {

// libsodium's hash is a pure function and needs no sodium_init, which would touch process-wide state.
class Sha256 {
 public:
  Sha256() { crypto_hash_sha256_init(&state_); }
  void update(const void* data, uint64_t bytes) {
    if (bytes != 0) crypto_hash_sha256_update(&state_, static_cast<const unsigned char*>(data), bytes);
  }
  // In lower-case hex. Called once.
  [[nodiscard]] std::string finish() {
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_final(&state_, digest);
    std::string hex;
    for (const unsigned char byte : digest) {
      hex += "0123456789abcdef"[byte >> 4];
      hex += "0123456789abcdef"[byte & 15];
    }
    return hex;
  }

 private:
  crypto_hash_sha256_state state_;
};

}  // namespace tenon::base
