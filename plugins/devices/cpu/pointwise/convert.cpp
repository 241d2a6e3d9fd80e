// Conversion of element types in memory to lanes and back. Plain loops that the compiler vectorises for each
// instruction set, without AVX-512, which is not faster here.
// SPDX-License-Identifier: Apache-2.0
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pointwise/convert.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pointwise/targets.h"
// clang-format on

#ifndef TENON_CPU_POINTWISE_CONVERT_ELEMENTS
#define TENON_CPU_POINTWISE_CONVERT_ELEMENTS

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace tenon::cpu {

struct Half {  // IEEE binary16
  uint16_t bits;
};
struct Brain {  // the upper half of a binary32
  uint16_t bits;
};
struct Truth {  // TN_BOOL: 0 is false, anything else is true
  uint8_t byte;
};

}  // namespace tenon::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

template <class E>
HWY_INLINE E decode(E element) {
  return element;
}
HWY_INLINE int32_t decode(Truth element) { return element.byte != 0 ? 1 : 0; }
HWY_INLINE float decode(Brain element) { return std::bit_cast<float>(static_cast<uint32_t>(element.bits) << 16); }
HWY_INLINE float decode(Half element) {
  // A product re-biases the exponent and normalises subnormals. Infinity and NaN then lack the upper bits of the
  // exponent, which are set here.
  const uint32_t bits = static_cast<uint32_t>(element.bits);
  const float size = std::bit_cast<float>((bits & 0x7fffU) << 13) * 0x1p112F;
  const uint32_t ends = size >= 0x1p16F ? 0x7f800000U : 0U;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(size) | ends | (bits & 0x8000U) << 16);
}

// The nearest number that To can hold, after truncation towards 0. NaN gives 0.
template <class To, class From>
HWY_INLINE To nearest_int(From number) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_floating_point_v<From>) {
    constexpr From kEnd = static_cast<From>(uint64_t{1} << (Limits::digits - 1)) * 2;  // the first above the range
    if (number >= kEnd) return Limits::max();
    if (number <= (std::is_signed_v<To> ? -kEnd : From{0})) return Limits::min();
    return number == number ? static_cast<To>(number) : To{0};
  } else {
    if (std::cmp_less(number, Limits::min())) return Limits::min();
    return std::cmp_greater(number, Limits::max()) ? Limits::max() : static_cast<To>(number);
  }
}

// Rounded to nearest, ties to even.
HWY_INLINE Half to_half(float number) {
  const uint32_t all = std::bit_cast<uint32_t>(number);
  const uint32_t sign = all >> 16 & 0x8000U;
  uint32_t bits = all & 0x7fffffffU;
  if (bits > 0x7f800000U) {
    bits = 0x7e00U;
  } else if (bits >= 0x477ff000U) {  // 65520 and above
    bits = 0x7c00U;
  } else if (bits < 0x38800000U) {  // below 2^-14: a sum with 0.5 leaves the subnormal in the low bits
    bits = std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + 0.5F) - 0x3f000000U;
  } else {
    bits = (bits - 0x38000000U + 0xfffU + (bits >> 13 & 1U)) >> 13;
  }
  return {static_cast<uint16_t>(sign | bits)};
}
HWY_INLINE Brain to_brain(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  if (number != number) return {static_cast<uint16_t>(bits >> 16 | 0x40U)};
  return {static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16)};
}

template <class E, class From>
HWY_INLINE E encode(From number) {
  if constexpr (std::is_same_v<E, Truth>) {
    return {static_cast<uint8_t>(number != From{0} ? 1 : 0)};
  } else if constexpr (std::is_same_v<E, Half>) {
    return to_half(static_cast<float>(number));
  } else if constexpr (std::is_same_v<E, Brain>) {
    return to_brain(static_cast<float>(number));
  } else if constexpr (std::is_integral_v<E>) {
    return nearest_int<E>(number);
  } else {
    return static_cast<E>(number);
  }
}

template <class T, uint8_t kKind>
using LaneOf = std::conditional_t<kKind == TN_FLOAT, T, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;

template <class T, uint8_t kKind, class E>
HWY_INLINE LaneOf<T, kKind> lane(E element) {
  using L = LaneOf<T, kKind>;
  if constexpr (kKind == TN_FLOAT) return static_cast<L>(decode(element));
  if constexpr (kKind == TN_INT) return nearest_int<L>(decode(element));
  if constexpr (kKind == TN_LOGICAL) return decode(element) != 0 ? L{-1} : L{0};
}

// a: elements [count] of type E -> out: lanes [count] of kind kKind.
template <class T, uint8_t kKind, class E>
void load(void* out, const void* a, const void*, const void*, int64_t count, int64_t) {
  LaneOf<T, kKind>* HWY_RESTRICT to = static_cast<LaneOf<T, kKind>*>(out);
  const E* HWY_RESTRICT from = static_cast<const E*>(a);
  for (int64_t i = 0; i < count; ++i) to[i] = lane<T, kKind>(from[i]);
}

// a: lanes [count] of kind kKind -> out: elements [count] of type E. kAdd: out[i] += a[i]; ints wrap, and bools are
// joined by "or".
template <class T, uint8_t kKind, class E, bool kAdd>
void store(void* out, const void* a, const void*, const void*, int64_t count, int64_t) {
  E* HWY_RESTRICT to = static_cast<E*>(out);
  const LaneOf<T, kKind>* HWY_RESTRICT from = static_cast<const LaneOf<T, kKind>*>(a);
  for (int64_t i = 0; i < count; ++i) {
    LaneOf<T, kKind> value = from[i];
    if constexpr (kAdd) {
      const LaneOf<T, kKind> held = lane<T, kKind>(to[i]);
      if constexpr (kKind == TN_FLOAT) value += held;
      if constexpr (kKind == TN_INT)
        value = static_cast<LaneOf<T, kKind>>(static_cast<uint64_t>(value) + static_cast<uint64_t>(held));
      if constexpr (kKind == TN_LOGICAL) value |= held;
    }
    if constexpr (kKind == TN_LOGICAL) value = value != 0 ? 1 : 0;
    to[i] = encode<E>(value);
  }
}

enum class Direction : uint8_t { kLoad, kStore, kAdd };

template <class T, uint8_t kKind, class E>
Kernel choose_direction(Direction direction) {
  if (direction == Direction::kLoad) return &load<T, kKind, E>;
  return direction == Direction::kAdd ? &store<T, kKind, E, true> : &store<T, kKind, E, false>;
}

template <class T, uint8_t kKind>
Kernel choose_element(tn_dtype dtype, Direction direction) {
  switch (dtype) {
    case TN_I8:
      return choose_direction<T, kKind, int8_t>(direction);
    case TN_I16:
      return choose_direction<T, kKind, int16_t>(direction);
    case TN_I32:
      return choose_direction<T, kKind, int32_t>(direction);
    case TN_I64:
      return choose_direction<T, kKind, int64_t>(direction);
    case TN_U8:
      return choose_direction<T, kKind, uint8_t>(direction);
    case TN_U16:
      return choose_direction<T, kKind, uint16_t>(direction);
    case TN_U32:
      return choose_direction<T, kKind, uint32_t>(direction);
    case TN_F16:
      return choose_direction<T, kKind, Half>(direction);
    case TN_BF16:
      return choose_direction<T, kKind, Brain>(direction);
    case TN_F32:
      return choose_direction<T, kKind, float>(direction);
    case TN_F64:
      return choose_direction<T, kKind, double>(direction);
    case TN_BOOL:
      return choose_direction<T, kKind, Truth>(direction);
    default:
      return nullptr;
  }
}

template <class T>
Kernel choose_kind(uint8_t kind, tn_dtype dtype, Direction direction) {
  switch (kind) {
    case TN_FLOAT:
      return choose_element<T, TN_FLOAT>(dtype, direction);
    case TN_INT:
      return choose_element<T, TN_INT>(dtype, direction);
    case TN_LOGICAL:
      return choose_element<T, TN_LOGICAL>(dtype, direction);
    default:
      return nullptr;
  }
}

}  // namespace

Kernel find_load(bool wide, uint8_t kind, tn_dtype dtype) {
  return wide ? choose_kind<double>(kind, dtype, Direction::kLoad) : choose_kind<float>(kind, dtype, Direction::kLoad);
}
Kernel find_store(bool wide, uint8_t kind, tn_dtype dtype, bool add) {
  const Direction direction = add ? Direction::kAdd : Direction::kStore;
  return wide ? choose_kind<double>(kind, dtype, direction) : choose_kind<float>(kind, dtype, direction);
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

Kernel load_kernel(Isa isa, bool wide, uint8_t kind, tn_dtype dtype) {
  TENON_CHOOSE(isa, find_load(wide, kind, dtype));
}
Kernel store_kernel(Isa isa, bool wide, uint8_t kind, tn_dtype dtype, bool add) {
  TENON_CHOOSE(isa, find_store(wide, kind, dtype, add));
}

}  // namespace tenon::cpu
#endif
