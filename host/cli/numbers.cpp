// SPDX-License-Identifier: Apache-2.0
#include "host/cli/numbers.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "host/cli/cli.h"

namespace tenon::cli {

// Calls `visit` with the element, integers of one byte as int.
template <typename Visit>
void Numbers::with_element(int64_t index, const Visit& visit) const {
  const auto with = [&](auto element) {
    std::memcpy(&element, static_cast<const char*>(array_.data) + static_cast<size_t>(index) * sizeof element,
                sizeof element);
    if constexpr (sizeof element == 1)
      visit(static_cast<int>(element));
    else
      visit(element);
  };
  switch (array_.dtype) {
    case TN_F32:  // NOLINT(bugprone-branch-clone): each with another type
      return with(float());
    case TN_F64:
      return with(double());
    case TN_I8:
      return with(int8_t());
    case TN_I16:
      return with(int16_t());
    case TN_I32:
      return with(int32_t());
    case TN_I64:
      return with(int64_t());
    case TN_U8:
    case TN_BOOL:
      return with(uint8_t());
    case TN_U16:
      return with(uint16_t());
    case TN_U32:
      return with(uint32_t());
    default:
      throw Failure(kBadConfig, "values of this element type cannot be printed");
  }
}

void Numbers::append(std::string& to, int64_t index) const {
  with_element(index, [&](auto number) {
    if constexpr (std::is_floating_point_v<decltype(number)>)
      if (!std::isfinite(number)) {
        to += nan_;
        return;
      }
    char text[40];
    to.append(text, std::to_chars(text, text + sizeof text, number).ptr);
  });
}

double Numbers::value(int64_t index) const {
  double result = 0;
  with_element(index, [&](auto number) { result = static_cast<double>(number); });
  return result;
}

int64_t samples_of(const Array& array) { return array.storage == TN_RAGGED ? array.samples : array.shape.at(0); }

int64_t per_row(const Array& array) { return array.shape[0] == 0 ? 0 : array.count() / array.shape[0]; }

}  // namespace tenon::cli
