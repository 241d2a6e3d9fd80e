// Samples of Python readers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "core.h"

namespace tenon_python {

// A slot of a reader written in Python.
struct Slot : tenon::SlotOptions {
  bool nan = false;    // whether floats may be NaN
  int64_t place = -1;  // in samples that are tuples; -1: that of the slot
};
using Slots = std::vector<Slot>;

[[nodiscard]] Slots slots_from(const std::vector<nb::dict>& given);
[[nodiscard]] tenon::Schema schema_of(const Slots& slots);

// Fills `sample` from a Python value: a dict by slot, a tuple or list by place, or, of one slot, its value. Throws an
// error that names `number`, the slot, the type of the value and the slot's. no_tuples: why tuples are refused, "" if
// they are not.
void fill(tenon::Sample& sample, const Slots& slots, nb::handle value, int64_t number,
          const std::string& no_tuples = "");

// Returns the samples of one slot, each a value as `fill` takes it, as one array with its memory. Errors as of `fill`.
[[nodiscard]] Values gather(const nb::dict& slot, nb::handle samples);

// Returns why numbers do not fit a slot, "" if they do: floats of an integer slot, integers that reach its limit, NaN,
// and floats that its float32 cannot hold. Integers beyond its element type are the sample's to refuse.
template <typename Numbers>
[[nodiscard]] std::string complaint_of(const Slot& slot, const Numbers& numbers) {
  using Number = std::decay_t<decltype(*std::begin(numbers))>;
  const bool whole = tn_dtype_code(slot.dtype) < 2 || slot.dtype == TN_BOOL;
  if constexpr (std::is_floating_point_v<Number>) {
    if (whole) return "floats are no integers";
    bool any = false;
    for (const Number number : numbers) any |= std::isnan(number);
    if (any && !slot.nan) {
      const auto first = std::find_if(std::begin(numbers), std::end(numbers), [](Number each) { return each != each; });
      return "number " + std::to_string(first - std::begin(numbers)) + " is nan; nan=\"allow\" feeds such numbers";
    }
    if constexpr (sizeof(Number) > sizeof(float))
      for (const Number number : numbers)
        if (slot.dtype == TN_F32 && std::isfinite(number) && std::isinf(static_cast<float>(number)))
          return "float32 cannot hold " + tenon::base::brief(number, 6);
  } else if (slot.index_limit > 0) {
    for (const Number number : numbers)
      if (std::cmp_less(number, 0) || std::cmp_greater_equal(number, slot.index_limit))
        return std::to_string(number) + " is not below " + std::to_string(slot.index_limit) +
               (std::cmp_less(number, 0) ? ", from 0 on" : "");
  }
  return "";
}

}  // namespace tenon_python
