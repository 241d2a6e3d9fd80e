// The checksum of TFRecord: CRC-32C (RFC 3720, appendix B.4), by tables of eight bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace extras {

using CrcTables = std::array<std::array<uint32_t, 256>, 8>;

constexpr CrcTables make_crc_tables() {
  CrcTables tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    tables[0][byte] = crc;
  }
  for (size_t i = 1; i < 8; ++i)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[i][byte] = tables[i - 1][byte] >> 8 ^ tables[0][tables[i - 1][byte] & 255];
  return tables;
}

inline uint32_t crc32c(const char* data, size_t size) {
  static constexpr CrcTables kTables = make_crc_tables();
  uint32_t crc = ~0u;
  for (; size >= 8; data += 8, size -= 8) {
    std::array<uint32_t, 2> words = {};
    std::memcpy(words.data(), data, 8);
    words[0] ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][words[i / 4] >> 8 * (i % 4) & 255];
  }
  for (; size > 0; ++data, --size) crc = crc >> 8 ^ kTables[0][(crc ^ static_cast<unsigned char>(*data)) & 255];
  return ~crc;
}

// As TFRecord stores it.
inline uint32_t masked_crc32c(const char* data, size_t size) {
  const uint32_t crc = crc32c(data, size);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

}  // namespace extras
