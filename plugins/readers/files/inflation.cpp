// Bounds the output of decompression. SPDX-License-Identifier: Apache-2.0
#include "inflation.h"

#include <algorithm>

namespace tenon::files {

namespace {

constexpr uint64_t kFreeBytes = uint64_t{16} << 20;  // every file may inflate to so much

}  // namespace

void Inflation::describe(tn::ReaderDescription& d) {
  d.attribute(tn::int_attribute("most_inflation", static_cast<int64_t>(kRatio))
                  .at_least(1)
                  .doc("compressed data that inflates to more than 16 MiB and so many times its size is refused"));
}

uint64_t Inflation::ratio_of(const tn::Attributes& attributes) {
  return static_cast<uint64_t>(attributes.integer("most_inflation"));
}

Inflation::Inflation(uint64_t compressed_bytes, uint64_t most_ratio) : ratio_(most_ratio) {
  if (__builtin_mul_overflow(compressed_bytes, most_ratio, &most_)) most_ = UINT64_MAX;
  most_ = std::max(most_, kFreeBytes);
}

void Inflation::add(uint64_t bytes, const std::string& path) {
  inflated_ += bytes;
  if (inflated_ > most_)
    throw tn::Failure(TN_BAD_DATA, path,
                      "inflates to more than " + std::to_string(ratio_) + " times its size; if the data is sound, " +
                          (ratio_ < kMostOfDeflate ? "set most_inflation = " + std::to_string(kMostOfDeflate)
                                                   : "raise most_inflation"));
}

}  // namespace tenon::files
