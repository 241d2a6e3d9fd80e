// The instructions of PTX for translated kernels, on top of cuda_emulator/kernel.h: numbers as the machine model of PTX
// defines them. Registers hold bits, without a type; an instruction takes them as values of its own type. Approximate
// instructions are computed as exactly as the CPU can.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ptx {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
using f32 = float;
using f64 = double;

// The carry of the thread that runs, from one instruction to the next; and a result that nothing reads.
inline bool carry = false, unused = false;

// The value of type T in a register or literal of at least its size.
template <class T, class R>
T take(R from) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<R>) {
    return static_cast<T>(from);
  } else {
    static_assert(sizeof(T) == sizeof(R), "a register of another size");
    return bits_as<T>(from);
  }
}
// The bits of a register that gets the value; signed integers are extended by their sign.
template <class R, class T>
R give(T from) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<R>(from);
  } else {
    static_assert(sizeof(T) == sizeof(R), "a register of another size");
    return bits_as<R>(from);
  }
}

// Shared memory may be addressed by 32 bits. It is static memory of the module, near to any other.
inline char near_shared;
inline u64 shared_address(u32 low) {
  const auto any = reinterpret_cast<u64>(&near_shared);
  return any + static_cast<u64>(static_cast<s64>(static_cast<s32>(low - static_cast<u32>(any))));
}

template <class T>
T* place(u64 address, unsigned values) {
  emulator::refused = emulator::refused || address % (values * sizeof(T)) != 0;
  return reinterpret_cast<T*>(address);
}
template <class T>
T load(u64 address, unsigned values, unsigned k) {
  T value;
  std::memcpy(&value, place<T>(address, values) + k, sizeof value);
  return value;
}
template <class T>
void store(u64 address, unsigned values, unsigned k, T value) {
  std::memcpy(place<T>(address, values) + k, &value, sizeof value);
}

template <class T>
using Unsigned = typename std::make_unsigned<T>::type;

// A type of twice the bits.
template <class T>
struct Twice;
template <>
struct Twice<u16> {
  using Type = u32;
};
template <>
struct Twice<s16> {
  using Type = s32;
};
template <>
struct Twice<u32> {
  using Type = u64;
};
template <>
struct Twice<s32> {
  using Type = s64;
};
template <>
struct Twice<u64> {
  using Type = unsigned __int128;
};
template <>
struct Twice<s64> {
  using Type = __int128;
};
template <class T>
typename Twice<T>::Type wide(T a, T b) {
  return static_cast<typename Twice<T>::Type>(a) * b;
}
template <class T>
T high(T a, T b) {
  return static_cast<T>(wide(a, b) >> 8 * sizeof(T));
}

template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  } else {
    return a + b;
  }
}
template <class T>
T sub(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  } else {
    return a - b;
  }
}
template <class T>
T mul(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(wide(a, b));
  } else {
    return a * b;
  }
}
template <class T>
T negated(T a) {
  if constexpr (std::is_integral_v<T>) {
    return sub(T(0), a);
  } else {
    return -a;
  }
}
template <class T>
T magnitude(T a) {
  if constexpr (std::is_integral_v<T>) {
    return a < 0 ? negated(a) : a;
  } else {
    return std::fabs(a);
  }
}
// Division of integers never traps.
template <class T>
T quotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return negated(a);
  }
  return static_cast<T>(a / b);
}
template <class T>
T rest(T a, T b) {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}
// Of a number and NaN, the number.
template <class T>
T least(T a, T b) {
  if (a != a) return b;
  return b < a ? b : a;
}
template <class T>
T most(T a, T b) {
  if (a != a) return b;
  return a < b ? b : a;
}
template <class T>
T fused(T a, T b, T c) {
  return std::fma(a, b, c);
}
// A result rounded in another direction than to nearest.
template <class Function>
__attribute__((noinline)) auto rounded(int direction, const Function& function) {
  const int before = std::fegetround();
  std::fesetround(direction);
  const volatile auto result = function();
  std::fesetround(before);
  return result;
}
template <class T>
T flushed(T a) {
  return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(T(0), a) : a;
}
template <class T>
T saturated(T a) {
  return a > 0 ? (a < 1 ? a : T(1)) : T(0);
}

template <class T>
T shifted_left(T a, u32 count) {
  return count >= 8 * sizeof(T) ? T(0) : static_cast<T>(static_cast<Unsigned<T>>(a) << count);
}
template <class T>
T shifted_right(T a, u32 count) {
  const u32 bits = 8 * sizeof(T);
  if (count >= bits) return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T(0);
  return static_cast<T>(a >> count);
}
template <class T>
T inserted(T a, T b, u32 position, u32 length) {
  const T mask = shifted_left(static_cast<T>(~shifted_left(static_cast<T>(~T(0)), length & 255)), position & 255);
  return static_cast<T>((shifted_left(a, position & 255) & mask) | (b & ~mask));
}
template <class T>
u32 leading_zeros(T a) {
  u32 count = 0;
  for (u32 bit = 8 * sizeof(T); bit-- > 0 && (a >> bit & 1) == 0;) ++count;
  return count;
}

// The nearest that To can hold; NaN gives 0. The number is whole.
template <class To, class From>
To whole(From a) {
  if (a != a) return 0;
  const From end = std::ldexp(From(1), 8 * sizeof(To) - (std::is_signed_v<To> ? 1 : 0));
  if (a >= end) return std::numeric_limits<To>::max();
  if (a < (std::is_signed_v<To> ? -end : From(0))) return std::numeric_limits<To>::lowest();
  return static_cast<To>(a);
}

// a + b, or a - b, with a carry.
template <class T>
T add_carry(T a, T b, bool in, bool& out) {
  const auto sum = static_cast<typename Twice<T>::Type>(a) + b + (in ? 1 : 0);
  out = sum >> 8 * sizeof(T) != 0;
  return static_cast<T>(sum);
}
template <class T>
T sub_borrow(T a, T b, bool in, bool& out) {
  const auto taken = static_cast<typename Twice<T>::Type>(b) + (in ? 1 : 0);
  out = a < taken;
  return static_cast<T>(a - taken);
}

// shfl.sync of a whole warp: the value of another lane, if that is inside of the limits, else the lane's own.
enum class Shuffle { kUp, kDown, kButterfly, kIndex };
inline u32 shuffled(Shuffle mode, u32 value, u32 by, u32 limits, u32 members, bool& inside) {
  emulator::refused = emulator::refused || members != 0xffffffff;
  const int lane = static_cast<int>(threadIdx.x % 32), segment = static_cast<int>(limits >> 8 & 31);
  const int last = (lane & segment) | (static_cast<int>(limits & 31) & ~segment), b = static_cast<int>(by & 31);
  const int from = mode == Shuffle::kUp          ? lane - b
                   : mode == Shuffle::kDown      ? lane + b
                   : mode == Shuffle::kButterfly ? lane ^ b
                                                 : (lane & segment) | (b & ~segment);
  inside = mode == Shuffle::kUp ? from >= last : from <= last;
  return emulator::exchange(value, threadIdx.x / 32 * 32 + static_cast<unsigned>(inside ? from : lane));
}

}  // namespace ptx
