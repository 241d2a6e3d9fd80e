// Samples of Python readers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "core.h"

namespace tenon_python {

[[nodiscard]] tenon::Schema schema_from(const std::vector<nb::dict>& slots);

// Fills `sample` from a Python value: a dict by slot, a tuple or list in the order of the schema, or, of one slot, its
// value. Throws an error that names `number`, the slot, the type of the value and the slot's.
void fill(tenon::Sample& sample, const tenon::Schema& schema, nb::handle value, int64_t number);

// Returns the samples of one slot, each a value as `fill` takes it, as one array with its memory. Errors as of `fill`.
[[nodiscard]] Values gather(const nb::dict& slot, nb::handle samples);

[[nodiscard]] std::string brief(double number);  // in few digits, as %g has it

// Returns why numbers do not fit a slot, "" if they do: floats of an integer slot, integers that reach its limit, and
// floats that its float32 cannot hold. Integers beyond its element type are the sample's to refuse.
template <typename Numbers>
[[nodiscard]] std::string complaint_of(const tenon::SlotOptions& slot, const Numbers& numbers) {
  using Number = std::decay_t<decltype(*std::begin(numbers))>;
  const bool whole = tn_dtype_code(slot.dtype) < 2 || slot.dtype == TN_BOOL;
  if constexpr (std::is_floating_point_v<Number>) {
    if (whole) return "floats are no integers";
    if constexpr (sizeof(Number) > sizeof(float))
      for (const Number number : numbers)
        if (slot.dtype == TN_F32 && std::isfinite(number) && std::isinf(static_cast<float>(number)))
          return "float32 cannot hold " + brief(number);
  } else if (slot.index_limit > 0) {
    for (const Number number : numbers)
      if (std::cmp_less(number, 0) || std::cmp_greater_equal(number, slot.index_limit))
        return std::to_string(number) + " is not below " + std::to_string(slot.index_limit) +
               (std::cmp_less(number, 0) ? ", from 0 on" : "");
  }
  return "";
}

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

}  // namespace tenon_python
