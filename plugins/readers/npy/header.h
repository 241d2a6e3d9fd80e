// The header of a .npy file: NumPy's enhancement proposal 1, versions 1 to 3. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/base.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::npy {

struct Header {
  tn_dtype dtype = 0;
  bool swapped = false;        // the byte order of the values is not that of this machine
  bool fortran = false;        // the first index varies fastest; false if that is the order of C, too
  std::vector<int64_t> shape;  // the first dimension counts the samples
};

// Bytes at the beginning of a file that values_offset needs.
constexpr size_t kPrefixBytes = 12;

// The offset of the values, from the file's first kPrefixBytes bytes, or all bytes of a shorter file. Throws
// tn::Failure on `path`.
uint64_t values_offset(std::string_view prefix, const std::string& path);
// Parses the header, the bytes before the values. Throws tn::Failure on `path`.
Header parse_header(std::string_view bytes, const std::string& path);

}  // namespace tenon::npy
