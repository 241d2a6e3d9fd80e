// Bounds the output of decompression by the size of its input. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <tenon/reader.hpp>

namespace tenon::files {

// Counts the inflated bytes of one file or archive. Refuses more than the larger of 16 MiB and most_inflation times its
// size.
class Inflation {
 public:
  static constexpr uint64_t kRatio = 100;           // real data reaches it rarely
  static constexpr uint64_t kMostOfDeflate = 1032;  // no gzip or ZIP data exceeds it

  // Declares the attribute most_inflation.
  static void describe(tn::ReaderDescription& d);
  // The value of that attribute.
  static uint64_t ratio_of(const tn::Attributes& attributes);

  // Without a bound.
  Inflation() = default;
  Inflation(uint64_t compressed_bytes, uint64_t most_ratio);
  // Counts inflated bytes. Throws TN_BAD_DATA on `path` if they exceed the bound.
  void add(uint64_t bytes, const std::string& path);

 private:
  uint64_t ratio_ = 0, most_ = UINT64_MAX, inflated_ = 0;
};

}  // namespace tenon::files
