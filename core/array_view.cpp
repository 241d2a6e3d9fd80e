// SPDX-License-Identifier: Apache-2.0
#include "core/array_view.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace tenon::core {

namespace {

bool is_empty(const ArrayView& array) {
  return std::any_of(array.shape.begin(), array.shape.end(), [](int64_t extent) { return extent <= 0; });
}

// Returns the number of last dimensions that are contiguous, and their elements.
std::pair<size_t, int64_t> contiguous(const ArrayView& array) {
  size_t dims = 0;
  int64_t elements = 1;
  for (size_t i = array.shape.size(); i-- > 0; ++dims) {
    if (array.shape[i] != 1 && array.strides[i] != elements) break;  // the stride of one element is never used
    elements *= array.shape[i];
  }
  return {dims, elements};
}

}  // namespace

bool is_row_major(const ArrayView& array) {
  return array.strides.empty() || is_empty(array) || contiguous(array).first == array.shape.size();
}

StridedPlaces::StridedPlaces(const ArrayView& array)
    : shape_(array.shape), strides_(array.strides), index_(array.shape.size(), 0) {
  for (size_t i = 0; i < strides_.size(); ++i)
    if (shape_[i] == 1) strides_[i] = 0;
}

void StridedPlaces::next() {
  for (size_t i = shape_.size(); i-- > 0;) {
    place_ += strides_[i];
    if (++index_[i] < shape_[i]) return;
    place_ -= strides_[i] * shape_[i];
    index_[i] = 0;
  }
}

namespace {

// Copies `count` elements that are `stride` elements apart.
template <size_t kWidth>
std::byte* copy_apart(const std::byte* from, int64_t stride, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count; ++i, from += stride * static_cast<int64_t>(kWidth), to += kWidth)
    std::memcpy(to, from, kWidth);
  return to;
}

// The same for elements of `width` bytes: 1, 2, 4 or 8.
std::byte* copy_apart(size_t width, const std::byte* from, int64_t stride, int64_t count, std::byte* to) {
  if (width == 1) return copy_apart<1>(from, stride, count, to);
  if (width == 2) return copy_apart<2>(from, stride, count, to);
  if (width == 4) return copy_apart<4>(from, stride, count, to);
  return copy_apart<8>(from, stride, count, to);
}

}  // namespace

uint64_t element_bytes(const ArrayView& array) {
  uint64_t elements = 1;
  for (const int64_t extent : array.shape) elements *= static_cast<uint64_t>(extent);
  return tn_dtype_storage(array.dtype, elements);
}

void copy_elements(const ArrayView& from, std::byte* to) {
  if (is_empty(from)) return;
  const auto width = static_cast<int64_t>(tn_dtype_bytes(from.dtype));
  const auto* const data = static_cast<const std::byte*>(from.data);
  if (from.strides.empty()) {
    int64_t elements = 1;
    for (const int64_t extent : from.shape) elements *= extent;
    std::memcpy(to, data, static_cast<size_t>(elements * width));
    return;
  }
  const auto [dims, block] = contiguous(from);
  const size_t inner = std::max<size_t>(dims, from.shape.empty() ? 0 : 1);  // those copied at a time
  ArrayView outer;                                                          // the dimensions before them
  outer.shape.assign(from.shape.begin(), from.shape.end() - static_cast<std::ptrdiff_t>(inner));
  outer.strides.assign(from.strides.begin(), from.strides.end() - static_cast<std::ptrdiff_t>(inner));
  int64_t blocks = 1;
  for (const int64_t extent : outer.shape) blocks *= extent;
  const auto bytes = static_cast<size_t>(block * width);
  StridedPlaces places(outer);
  if (dims < inner) {
    for (int64_t i = 0; i < blocks; ++i, places.next())
      to = copy_apart(static_cast<size_t>(width), data + places.place() * width, from.strides.back(), from.shape.back(),
                      to);
    return;
  }
  for (int64_t i = 0; i < blocks; ++i, to += bytes, places.next())
    std::memcpy(to, data + places.place() * width, bytes);
}

namespace {

template <typename Float>
int64_t search(const void* values, int64_t count) {
  const auto* const begin = static_cast<const Float*>(values);
  const auto* const end = begin + count;
  const auto* const at = std::find_if_not(begin, end, [](Float value) { return std::isfinite(value); });
  return at == end ? -1 : at - begin;
}

}  // namespace

int64_t find_not_finite(tn_dtype dtype, const void* values, int64_t count) {
  return dtype == TN_F64 ? search<double>(values, count) : search<float>(values, count);
}

namespace {

template <typename Integer>
std::optional<IndexBeyond> search(const ArrayView& array, const IndexLimit& limit) {
  const auto* const data = static_cast<const Integer*>(array.data);
  const bool strided = !is_row_major(array);
  StridedPlaces places(array);
  int64_t count = 1;
  for (const int64_t extent : array.shape) count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<int64_t>(data[strided ? places.place() : i]);  // NOLINT(bugprone-signed-char-misuse)
    if ((value < 0 || value >= limit.limit) && limit.exempt != value) return IndexBeyond{i, value};
    if (strided) places.next();
  }
  return std::nullopt;
}

}  // namespace

std::string to_string(const IndexLimit& limit) {
  const std::string range = "0 to " + std::to_string(limit.limit - 1);
  return limit.exempt ? range + ", or " + std::to_string(*limit.exempt) : range;
}

std::optional<IndexBeyond> first_beyond(const ArrayView& array, const IndexLimit& limit) {
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
