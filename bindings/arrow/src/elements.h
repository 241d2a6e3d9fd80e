// Elements of arrays by their types. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tenon/tenon.hpp>

namespace tenon_arrow {

// Calls use(numbers) with the `count` elements at `data` as a span of their type; returns false, without a call, for
// types that are not read.
template <typename Use>
[[nodiscard]] bool with_elements(tn_dtype dtype, const void* data, size_t count, const Use& use) {
  const auto as = [&](auto number) {
    use(std::span<const decltype(number)>(static_cast<const decltype(number)*>(data), count));
    return true;
  };
  switch (dtype) {
    case TN_F32:
      return as(float{});
    case TN_F64:
      return as(double{});
    case TN_I8:
      return as(int8_t{});
    case TN_I16:
      return as(int16_t{});
    case TN_I32:
      return as(int32_t{});
    case TN_I64:
      return as(int64_t{});
    case TN_U8:
    case TN_BOOL:
      return as(uint8_t{});
    case TN_U16:
      return as(uint16_t{});
    case TN_U32:
      return as(uint32_t{});
    case TN_DTYPE(1, 64):
      return as(uint64_t{});
    default:
      return false;
  }
}

}  // namespace tenon_arrow
