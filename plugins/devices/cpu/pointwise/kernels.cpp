// Kernels of arithmetic, comparison, selection, logic and casts. SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pointwise/kernels.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pointwise/targets.h"
// clang-format on

#include <algorithm>
#include <cmath>
#include <limits>

#include "pointwise/loops-inl.h"
#include "pointwise/split_passes.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

struct Minus {
  template <class V>
  static HWY_INLINE V run(V a, V b) {
    return hn::Sub(a, b);
  }
};
struct Times {
  template <class V>
  static HWY_INLINE V run(V a, V b) {
    return hn::Mul(a, b);
  }
};
struct Over {
  template <class V>
  static HWY_INLINE V run(V a, V b) {
    return hn::Div(a, b);
  }
};
struct Negate {
  template <class V>
  static HWY_INLINE V run(V a) {
    return hn::Neg(a);
  }
};
struct Absolute {
  template <class V>
  static HWY_INLINE V run(V a) {
    return hn::Abs(a);
  }
};
// The sign of a zero is that of x on every target.
struct Floor {
  template <class V>
  static HWY_INLINE V run(V x) {
    return hn::CopySign(hn::Floor(x), x);
  }
};
struct Round {
  template <class V>
  static HWY_INLINE V run(V x) {
    return hn::CopySign(hn::Round(x), x);
  }
};
struct Sign {
  template <class V>
  static HWY_INLINE V run(V x) {
    const hn::DFromV<V> d;
    if constexpr (std::is_floating_point_v<Lane<V>>) {
      return hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Zero(d)), hn::CopySign(hn::Set(d, Lane<V>{1}), x), x);
    } else {
      return hn::Sub(hn::VecFromMask(d, hn::Lt(x, hn::Zero(d))), hn::VecFromMask(d, hn::Gt(x, hn::Zero(d))));
    }
  }
};
struct MulAdd {
  template <class V>
  static HWY_INLINE V run(V a, V b, V c) {
    return hn::MulAdd(a, b, c);
  }
};
struct MulSub {
  template <class V>
  static HWY_INLINE V run(V a, V b, V c) {
    return hn::MulSub(a, b, c);
  }
};
struct NegMulAdd {
  template <class V>
  static HWY_INLINE V run(V a, V b, V c) {
    return hn::NegMulAdd(a, b, c);
  }
};

// The largest int that is not above a / b; 0 where b is 0, -a where it is -1.
template <class T>
HWY_INLINE T floor_quotient(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if (b == 0) return 0;
  if (b == -1) return static_cast<T>(U{0} - static_cast<U>(a));  // wraps around
  const T quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
struct FloorDivide {
  template <class V>
  static HWY_INLINE V run(V a, V b) {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (sizeof(Lane<V>) == 4) return in_f64(a, b);
#endif
    using T = Lane<V>;
    constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(T);
    HWY_ALIGN T from[kLanes] = {};
    HWY_ALIGN T by[kLanes] = {};
    hn::Store(a, Tag<T>(), from);
    hn::Store(b, Tag<T>(), by);
    for (size_t i = 0; i < kLanes; ++i) from[i] = floor_quotient(from[i], by[i]);
    return hn::Load(Tag<T>(), from);
  }

 private:
#if HWY_TARGET != HWY_SCALAR
  // Highway has no division of ints. The floor of a quotient in f64 is exact: a quotient that is not whole is at least
  // 2^-31 away from a whole number, which is more than its rounding error.
  static HWY_INLINE Vector<int32_t> in_f64(Vector<int32_t> a, Vector<int32_t> b) {
    const Tag<int32_t> d;
    const hn::Repartition<double, Tag<int32_t>> wide;
    const hn::Rebind<int32_t, decltype(wide)> half;
    const auto floor = [&](auto from, auto by) {
      return hn::DemoteTo(half, hn::Floor(hn::Div(hn::PromoteTo(wide, from), hn::PromoteTo(wide, by))));
    };
    const auto low = floor(hn::LowerHalf(half, a), hn::LowerHalf(half, b));
    const auto high = floor(hn::UpperHalf(half, a), hn::UpperHalf(half, b));
    const auto quotient = hn::IfThenElse(hn::Eq(b, hn::Set(d, -1)), hn::Neg(a), hn::Combine(d, high, low));
    return hn::IfThenZeroElse(hn::Eq(b, hn::Zero(d)), quotient);
  }
#endif
};
struct Modulus {
  template <class V>
  static HWY_INLINE V run(V a, V b) {
    const V rest = hn::Sub(a, hn::Mul(FloorDivide::run(a, b), b));
    return hn::IfThenZeroElse(hn::Eq(b, hn::Zero(hn::DFromV<V>())), rest);
  }
};

template <class T, class M>
HWY_INLINE auto as_lanes(M mask) {
  const hn::RebindToSigned<Tag<T>> di;
  return hn::VecFromMask(di, hn::RebindMask(di, mask));
}
struct Equal {
  template <class V>
  static HWY_INLINE auto run(V a, V b) {
    return as_lanes<Lane<V>>(hn::Eq(a, b));
  }
};
struct Less {
  template <class V>
  static HWY_INLINE auto run(V a, V b) {
    return as_lanes<Lane<V>>(hn::Lt(a, b));
  }
};
struct LessEqual {
  template <class V>
  static HWY_INLINE auto run(V a, V b) {
    if constexpr (std::is_floating_point_v<Lane<V>>) {
      return as_lanes<Lane<V>>(hn::Le(a, b));
    } else {
      return hn::Not(as_lanes<Lane<V>>(hn::Lt(b, a)));
    }
  }
};
struct IsFinite {
  template <class V>
  static HWY_INLINE auto run(V a) {
    return as_lanes<Lane<V>>(hn::IsFinite(a));
  }
};
struct Both {
  template <class V>
  static HWY_INLINE V run(V a, V b) {
    return hn::And(a, b);
  }
};
struct Either {
  template <class V>
  static HWY_INLINE V run(V a, V b) {
    return hn::Or(a, b);
  }
};
struct Not {
  template <class V>
  static HWY_INLINE V run(V a) {
    return hn::Not(a);
  }
};
struct Select {
  template <class V>
  static HWY_INLINE V run(V a, V b, V c) {
    return hn::IfThenElse(hn::MaskFromVec(a), b, c);
  }
};

// Lane by lane where Highway has no vector form on every target.
template <class To, class From>
HWY_INLINE Vector<To> lane_by_lane(Vector<From> a) {
  constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(From);
  HWY_ALIGN From from[kLanes] = {};
  HWY_ALIGN To to[kLanes];
  hn::Store(a, Tag<From>(), from);
  for (size_t i = 0; i < kLanes; ++i) {
    if constexpr (std::is_integral_v<To>) {
      constexpr From kEnd = static_cast<From>(uint64_t{1} << (8 * sizeof(To) - 1));
      to[i] = from[i] >= kEnd    ? std::numeric_limits<To>::max()
              : from[i] >= -kEnd ? static_cast<To>(from[i])
                                 : std::numeric_limits<To>::min();
    } else {
      to[i] = static_cast<To>(from[i]);
    }
  }
  return hn::Load(Tag<To>(), to);
}
template <class T>
struct Truncate {
  using I = hwy::MakeSigned<T>;
  static HWY_INLINE Vector<I> run(Vector<T> a) {
    a = hn::IfThenElse(hn::IsNaN(a), hn::Zero(Tag<T>()), a);  // processors convert NaN to different numbers
    if constexpr (sizeof(T) == 4) return hn::ConvertTo(Tag<I>(), a);
    return lane_by_lane<I, T>(a);
  }
};
template <class T>
struct ToFloat {
  using I = hwy::MakeSigned<T>;
  static HWY_INLINE Vector<T> run(Vector<I> a) {
    if constexpr (sizeof(T) == 4) return hn::ConvertTo(Tag<T>(), a);
    return lane_by_lane<T, I>(a);
  }
};
template <class T>
struct BoolTo {  // 1 or 0
  using I = hwy::MakeSigned<T>;
  static HWY_INLINE Vector<T> run(Vector<I> a) {
    return hn::IfThenElseZero(hn::RebindMask(Tag<T>(), hn::MaskFromVec(a)), hn::Set(Tag<T>(), T{1}));
  }
};
struct NotZero {
  template <class V>
  static HWY_INLINE auto run(V a) {
    return as_lanes<Lane<V>>(hn::Not(hn::Eq(a, hn::Zero(hn::DFromV<V>()))));
  }
};

template <class T>
Kernel choose_cast(uint8_t kind, uint8_t to) {
  using I = hwy::MakeSigned<T>;
  if (kind == TN_FLOAT && to == TN_INT) return &unary<T, Truncate<T>>;
  if (kind == TN_FLOAT && to == TN_LOGICAL) return &unary<T, NotZero>;
  if (kind == TN_INT && to == TN_FLOAT) return &unary<I, ToFloat<T>>;
  if (kind == TN_INT && to == TN_LOGICAL) return &unary<I, NotZero>;
  if (kind == TN_LOGICAL && to == TN_FLOAT) return &unary<I, BoolTo<T>>;
  if (kind == TN_LOGICAL && to == TN_INT) return &unary<I, BoolTo<I>>;
  return nullptr;
}

// a [count], or one element if kOne -> out [count].
template <class T, bool kOne>
void copy(void* out, const void* a, const void*, const void*, int64_t count, int64_t) {
  if (count == 0) return;
  if constexpr (kOne) {
    std::fill_n(static_cast<T*>(out), count, *static_cast<const T*>(a));
  } else {
    std::memmove(out, a, static_cast<size_t>(count) * sizeof(T));
  }
}

// Operations that floats and ints share.
template <class T>
Kernel choose_number(const KernelKey& key) {
  switch (key.operation) {
    case TN_OP_ADD:
      return choose_binary<T, Plus>(key.broadcast);
    case TN_OP_SUB:
      return choose_binary<T, Minus>(key.broadcast);
    case TN_OP_MUL:
      return choose_binary<T, Times>(key.broadcast);
    case TN_OP_MIN:
      return choose_binary<T, Extreme<false>>(key.broadcast);
    case TN_OP_MAX:
      return choose_binary<T, Extreme<true>>(key.broadcast);
    case TN_OP_NEG:
      return &unary<T, Negate>;
    case TN_OP_ABS:
      return &unary<T, Absolute>;
    case TN_OP_SIGN:
      return &unary<T, Sign>;
    case TN_OP_EQUAL:
      return choose_binary<T, Equal>(key.broadcast);
    case TN_OP_LESS:
      return choose_binary<T, Less>(key.broadcast);
    case TN_OP_LESS_EQUAL:
      return choose_binary<T, LessEqual>(key.broadcast);
    default:
      return nullptr;
  }
}

template <class I>
Kernel choose_int(const KernelKey& key) {
  switch (key.operation) {
    case TN_OP_FLOOR_DIV:
      return choose_binary<I, FloorDivide>(key.broadcast);
    case TN_OP_MOD:
      return choose_binary<I, Modulus>(key.broadcast);
    default:
      return choose_number<I>(key);
  }
}

template <class T>
Kernel choose_float(const KernelKey& key) {
  switch (key.operation) {
    case TN_OP_DIV:
      return choose_binary<T, Over>(key.broadcast);
    case TN_OP_FLOOR:
      return &unary<T, Floor>;
    case TN_OP_ROUND:
      return &unary<T, Round>;
    case TN_OP_IS_FINITE:
      return &unary<T, IsFinite>;
    case kMulAdd:
      return choose_ternary<T, MulAdd>(key.broadcast);
    case kMulSub:
      return choose_ternary<T, MulSub>(key.broadcast);
    case kNegMulAdd:
      return choose_ternary<T, NegMulAdd>(key.broadcast);
    default:
      return choose_number<T>(key);
  }
}

template <class T>
Kernel choose_arithmetic(const KernelKey& key) {
  using I = hwy::MakeSigned<T>;
  switch (key.operation) {
    case TN_OP_CAST:
      return choose_cast<T>(key.kind, key.to);
    case TN_OP_SELECT:
      return choose_ternary<I, Select>(key.broadcast);
    case kCopy:
      return (key.broadcast & 1U) != 0 ? &copy<I, true> : &copy<I, false>;
    default:
      break;
  }
  if (key.kind == TN_INT) return choose_int<I>(key);
  if (key.kind == TN_LOGICAL) {
    switch (key.operation) {
      case TN_OP_AND:
        return choose_binary<I, Both>(key.broadcast);
      case TN_OP_OR:
        return choose_binary<I, Either>(key.broadcast);
      case TN_OP_NOT:
        return &unary<I, Not>;
      default:
        return nullptr;
    }
  }
  return choose_float<T>(key);
}

}  // namespace

Kernel find_arithmetic(const KernelKey& key) {
  return key.wide ? choose_arithmetic<double>(key) : choose_arithmetic<float>(key);
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

Isa detect_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // Exactly what Highway's AVX2 and AVX3 code is compiled to use.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  return avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kBaseline;
#else
  return Isa::kBaseline;
#endif
}

Kernel arithmetic_kernel(const KernelKey& key) { TENON_CHOOSE(key.isa, find_arithmetic(key)); }

}  // namespace tenon::cpu
#endif
