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
  bool swapped = false;        // values are not in the order of bytes of this machine
  std::vector<int64_t> shape;  // the first dimension counts the samples
};

// Bytes of a file that tell how long its header is.
constexpr size_t kPrefixBytes = 12;

// Where the values begin, from the file's first kPrefixBytes bytes or all there are; throws tn::Failure on `path`.
uint64_t values_offset(std::string_view prefix, const std::string& path);
// The header from the bytes before the values; throws tn::Failure on `path`.
Header parse_header(std::string_view bytes, const std::string& path);

}  // namespace tenon::npy
