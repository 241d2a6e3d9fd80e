// The checksum of a model file. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/sha256.h"
#include "base/xxh3.h"

namespace tenon::core {

// The hash by which a file states its checksum: SHA-256 in files of earlier versions.
class Checksum {
 public:
  static Checksum xxh3() { return Checksum(base::Xxh3()); }
  static Checksum sha256() { return Checksum(base::Sha256()); }
  void update(const void* data, uint64_t bytes) {
    std::visit([&](auto& hash) { hash.update(data, bytes); }, hash_);
  }
  [[nodiscard]] std::string finish() {
    return std::visit([](auto& hash) { return hash.finish(); }, hash_);
  }

 private:
  explicit Checksum(std::variant<base::Xxh3, base::Sha256> hash) : hash_(hash) {}
  std::variant<base::Xxh3, base::Sha256> hash_;
};

}  // namespace tenon::core
