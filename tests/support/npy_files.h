// Arrays and archives as NumPy saves them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/gzip.h"

namespace tenon_tests {

inline Bytes little(uint64_t value, int bytes) {
  Bytes result;
  for (int i = 0; i < bytes; ++i, value >>= 8) result += static_cast<char>(value);
  return result;
}

// A .npy file with this literal as its header.
inline Bytes npy(const Bytes& literal, const Bytes& values, int version = 1) {
  return "\x93NUMPY" + Bytes{static_cast<char>(version), 0} + little(literal.size(), version == 1 ? 2 : 4) + literal +
         values;
}
inline Bytes header(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }    \n";
}
template <typename T>
Bytes values_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

struct Entry {
  std::string name;
  Bytes content;
  bool deflated = false;
  uint32_t crc_change = 0;
  uint16_t flags = 0, method = 0;  // method 0: determined by deflated
};

// A ZIP archive of these members.
inline Bytes zip(const std::vector<Entry>& entries) {
  Bytes all, directory;
  for (const Entry& entry : entries) {
    Bytes data = entry.content;
    if (entry.deflated) {
      const Bytes whole = gzip(entry.content);
      data = whole.substr(10, whole.size() - 18);  // without the header and trailer of gzip: plain deflate
    }
    const auto crc = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(entry.content.data()), static_cast<uInt>(entry.content.size())));
    const uint16_t method = entry.method != 0 ? entry.method : entry.deflated ? 8 : 0;
    const Bytes common = little(20, 2) + little(entry.flags, 2) + little(method, 2) + little(0, 4) +
                         little(crc ^ entry.crc_change, 4) + little(data.size(), 4) + little(entry.content.size(), 4) +
                         little(entry.name.size(), 2) + little(0, 2);
    directory += "PK\1\2" + little(20, 2) + common + little(0, 10) + little(all.size(), 4) + entry.name;
    all += "PK\3\4" + common + entry.name + data;
  }
  const Bytes count = little(entries.size(), 2);
  return all + directory + "PK\5\6" + little(0, 4) + count + count + little(directory.size(), 4) +
         little(all.size(), 4) + little(0, 2);
}

}  // namespace tenon_tests
