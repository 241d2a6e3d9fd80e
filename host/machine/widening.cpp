// SPDX-License-Identifier: Apache-2.0
#include "host/machine/widening.h"

#include "core/error.h"
#include "core/shape.h"

namespace tenon::host {

namespace {

bool is_unsigned(tn_dtype dtype) { return dtype == TN_U8 || dtype == TN_U16 || dtype == TN_U32; }
bool is_signed(tn_dtype dtype) { return dtype == TN_I8 || dtype == TN_I16 || dtype == TN_I32 || dtype == TN_I64; }

template <typename From, typename To>
void convert(const ArrayView& from, std::byte* to) {
  const auto* const data = static_cast<const From*>(from.data);
  auto* const out = reinterpret_cast<To*>(to);
  int64_t count = 1;
  for (const int64_t extent : from.shape) count *= extent;
  if (is_row_major(from)) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<To>(data[i]);  // NOLINT(bugprone-signed-char-misuse)
    return;
  }
  StridedPlaces places(from);
  for (int64_t i = 0; i < count; ++i, places.next())
    out[i] = static_cast<To>(data[places.place()]);  // NOLINT(bugprone-signed-char-misuse)
}

template <typename From>
void convert_from(const ArrayView& from, tn_dtype dtype, std::byte* to) {
  switch (dtype) {
    case TN_U16:
      return convert<From, uint16_t>(from, to);
    case TN_I16:
      return convert<From, int16_t>(from, to);
    case TN_U32:
      return convert<From, uint32_t>(from, to);
    case TN_I32:
      return convert<From, int32_t>(from, to);
    case TN_I64:
      return convert<From, int64_t>(from, to);
    case TN_F32:
      return convert<From, float>(from, to);
    case TN_F64:
      return convert<From, double>(from, to);
    default:
      fail(TN_INTERNAL, "no conversion to ", dtype_name(dtype));
  }
}

}  // namespace

bool widens(tn_dtype from, tn_dtype to) {
  if (from == TN_F32) return to == TN_F64;
  if (!is_unsigned(from) && !is_signed(from)) return false;
  if (to == TN_F32) return tn_dtype_bits(from) <= 16;
  if (to == TN_F64) return tn_dtype_bits(from) <= 32;
  if (is_unsigned(to)) return is_unsigned(from) && tn_dtype_bits(from) < tn_dtype_bits(to);
  return is_signed(to) && tn_dtype_bits(from) < tn_dtype_bits(to);
}

void copy_widened(const ArrayView& from, tn_dtype dtype, std::byte* to) {
  switch (from.dtype == dtype ? TN_COMPUTE : from.dtype) {
    case TN_U8:
      return convert_from<uint8_t>(from, dtype, to);
    case TN_I8:
      return convert_from<int8_t>(from, dtype, to);
    case TN_U16:
      return convert_from<uint16_t>(from, dtype, to);
    case TN_I16:
      return convert_from<int16_t>(from, dtype, to);
    case TN_U32:
      return convert_from<uint32_t>(from, dtype, to);
    case TN_I32:
      return convert_from<int32_t>(from, dtype, to);
    case TN_F32:
      return convert_from<float>(from, dtype, to);
    default:
      return copy_elements(from, to);
  }
}

}  // namespace tenon::host
