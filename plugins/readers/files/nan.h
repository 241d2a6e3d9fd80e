// NaN among the values of arrays in files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <tenon/plugin.hpp>

namespace tenon::files {

// The attribute of readers of arrays. Readers of text refuse NaN always.
inline void describe_nan(tn::ReaderDescription& d) {
  d.attribute(tn::string_attribute("nan", "refuse")
                  .one_of({"refuse", "allow"})
                  .doc("whether floats that are NaN are an error or read as they are"));
}

inline bool allows_nan(const tn::Attributes& attributes) { return attributes.text("nan") == std::string_view("allow"); }

// The number of the first value that is NaN; -1 if there is none.
template <typename Bits>
int64_t first_nan(const uint8_t* values, uint64_t bytes, Bits infinity) {
  const auto is_nan = [&](uint64_t at) {
    Bits it;
    std::memcpy(&it, values + at, sizeof it);
    return static_cast<Bits>(it << 1) > static_cast<Bits>(infinity << 1);
  };
  bool any = false;
  for (uint64_t at = 0; at < bytes; at += sizeof(Bits)) any |= is_nan(at);
  for (uint64_t at = 0; any && at < bytes; at += sizeof(Bits))
    if (is_nan(at)) return static_cast<int64_t>(at / sizeof(Bits));
  return -1;
}

// Throws TN_BAD_DATA for NaN among the values of a sample of this element type.
inline void refuse_nan(tn_dtype dtype, const uint8_t* values, uint64_t bytes, const std::string& path, int64_t sample) {
  int64_t at = -1;
  if (dtype == TN_F32) at = first_nan<uint32_t>(values, bytes, 0x7F800000u);
  if (dtype == TN_F64) at = first_nan<uint64_t>(values, bytes, 0x7FF0000000000000u);
  if (dtype == TN_F16) at = first_nan<uint16_t>(values, bytes, 0x7C00u);
  if (at >= 0)
    throw tn::Failure(TN_BAD_DATA, path,
                      "sample " + std::to_string(sample) + ": number " + std::to_string(at) +
                          " is nan; nan = \"allow\" reads such numbers");
}

}  // namespace tenon::files
