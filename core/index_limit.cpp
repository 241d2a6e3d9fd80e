// SPDX-License-Identifier: Apache-2.0
#include "core/index_limit.h"

namespace tenon::core {

namespace {

template <typename Integer>
std::optional<IndexBeyond> search(const ArrayView& array, int64_t limit) {
  const auto* const data = static_cast<const Integer*>(array.data);
  const bool strided = !is_row_major(array);
  StridedPlaces places(array);
  int64_t count = 1;
  for (const int64_t extent : array.shape) count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<int64_t>(data[strided ? places.place() : i]);
    if (value < 0 || value >= limit) return IndexBeyond{i, value};
    if (strided) places.next();
  }
  return std::nullopt;
}

}  // namespace

std::optional<IndexBeyond> first_beyond(const ArrayView& array, int64_t limit) {
  switch (array.dtype) {
    case TN_U8:
    case TN_BOOL:
      return search<uint8_t>(array, limit);
    case TN_I8:
      return search<int8_t>(array, limit);
    case TN_I16:
      return search<int16_t>(array, limit);
    case TN_U16:
      return search<uint16_t>(array, limit);
    case TN_I32:
      return search<int32_t>(array, limit);
    case TN_U32:
      return search<uint32_t>(array, limit);
    default:
      return search<int64_t>(array, limit);
  }
}

}  // namespace tenon::core
