// Bounds what comes out of compressed data by what went in. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tenon/reader.hpp>

namespace tenon::files {

class Inflation {
 public:
  static constexpr uint64_t kRatio = 1000;  // deflate gives 1032 at most, and data worth reading far less

  // The attribute most_inflation.
  static void describe(tn::ReaderDescription& d);
  // The value of that attribute.
  static uint64_t ratio_of(const tn::Attributes& attributes);

  Inflation() = default;
  Inflation(uint64_t compressed_bytes, uint64_t most_ratio);
  // So many bytes more came out. Throws TN_BAD_DATA that names `path` once that is too much.
  void add(uint64_t bytes, const std::string& path);

 private:
  uint64_t ratio_ = 0, most_ = UINT64_MAX, inflated_ = 0;
};

}  // namespace tenon::files
