// Kernels of square root, exponential, logarithm, tanh, erf, sine, cosine and power.
//
// Largest error against long double, in units in the last place, measured over 7 million arguments of all magnitudes
// with each instruction set (f32 / f64): sqrt 0.5 / 0.5, exp 1.04 / 1.0, expm1 3.5 / 4.0, log 0.9 / 0.9,
// log1p 2.4 / 2.4, tanh 2.7 / 3.1, erf 2.6 / 1.2, sin 2.5 / 2.7, cos 2.4 / 3.0, pow 0.51 / 0.6.
// tests/devices/pointwise_math_test.cpp checks these bounds.
// NaN gives NaN; exp(-inf) = 0, exp(inf) = inf, log(0) = log1p(-1) = -inf, tanh(inf) = erf(inf) = 1. The logarithm of a
// negative number is NaN, as are sin and cos of infinity. Highway's functions are not specified outside of their
// ranges, so these results are set here. SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pointwise/math.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pointwise/targets.h"
// clang-format on

#include <hwy/contrib/math/math-inl.h>
#include <tenon/elementary.h>

#include <limits>
#include <numbers>

#include "pointwise/loops-inl.h"
#include "pointwise/split_passes.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

template <class T>
constexpr T kInf = std::numeric_limits<T>::infinity();
template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

template <class T>
HWY_INLINE Vector<T> constant(double number) {
  return hn::Set(Tag<T>(), static_cast<T>(number));
}
// x if it is NaN, else y.
template <class T>
HWY_INLINE Vector<T> keep_nan(Vector<T> x, Vector<T> y) {
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}
// Bounds the argument of an exponential to a number whose exponential is infinite already.
template <class T>
HWY_INLINE Vector<T> below_overflow(Vector<T> x) {
  return hn::Min(x, constant<T>(sizeof(T) == 4 ? 89.0 : 710.0));
}

template <class T>
struct Root {
  static HWY_INLINE Vector<T> run(Vector<T> x) { return hn::Sqrt(x); }
};
template <class T>
struct Exponential {
  static HWY_INLINE Vector<T> run(Vector<T> x) { return keep_nan<T>(x, hn::Exp(Tag<T>(), below_overflow<T>(x))); }
};
template <class T>
struct ExponentialMinus1 {
  static HWY_INLINE Vector<T> run(Vector<T> x) { return keep_nan<T>(x, hn::Expm1(Tag<T>(), below_overflow<T>(x))); }
};

// `y` where 0 < x < inf. Else the limits of a logarithm: inf at inf, -inf at 0, NaN for negative numbers and NaN.
template <class T>
HWY_INLINE Vector<T> logarithm_ends(Vector<T> x, Vector<T> y) {
  const Tag<T> d;
  const Vector<T> inf = hn::Set(d, kInf<T>);
  y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(inf), y);
  return hn::IfThenElse(hn::Ge(x, hn::Zero(d)), y, hn::Set(d, kNan<T>));
}
template <class T>
struct Logarithm {
  static HWY_INLINE Vector<T> run(Vector<T> x) { return logarithm_ends<T>(x, hn::Log(Tag<T>(), x)); }
};
template <class T>
struct Logarithm1 {
  static HWY_INLINE Vector<T> run(Vector<T> x) {
    return logarithm_ends<T>(hn::Add(x, constant<T>(1)), hn::Log1p(Tag<T>(), x));
  }
};
template <class T>
struct HyperbolicTangent {
  static HWY_INLINE Vector<T> run(Vector<T> x) {
    const Vector<T> bounded = hn::Min(hn::Max(x, constant<T>(-20)), constant<T>(20));
    return keep_nan<T>(x, hn::Tanh(Tag<T>(), bounded));
  }
};

// function(each lane...), for what Highway does not offer.
template <class T, class Function, class... V>
HWY_INLINE Vector<T> lane_by_lane(Function function, V... vectors) {
  constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(T);
  HWY_ALIGN T lane[sizeof...(V)][kLanes] = {};
  size_t next = 0;
  (hn::Store(vectors, Tag<T>(), lane[next++]), ...);
  for (size_t i = 0; i < kLanes; ++i) {
    if constexpr (sizeof...(V) == 1) {
      lane[0][i] = function(lane[0][i]);
    } else {
      lane[0][i] = function(lane[0][i], lane[1][i]);
    }
  }
  return hn::Load(Tag<T>(), lane[0]);
}

// coefficients[0] + x coefficients[1] + ..., by Horner's rule, without a loop, which the compiler does not unroll.
template <class T, size_t kFrom = 0, size_t kCount>
HWY_INLINE Vector<T> polynomial(Vector<T> x, const double (&coefficients)[kCount]) {
  const Vector<T> first = constant<T>(coefficients[kFrom]);
  if constexpr (kFrom + 1 == kCount) return first;
  if constexpr (kFrom + 1 < kCount) return hn::MulAdd(polynomial<T, kFrom + 1>(x, coefficients), x, first);
}

// Highway has no erf. f32: x * P(x^2) below 1 and Q((|x| - 2.5) / 1.5) from 1 to 4, interpolated at Chebyshev nodes in
// 40 digits (relative error 1.3e-9 and 1.1e-8). f64, the type of checks, calls tenon/elementary.h.
template <class T>
struct ErrorFunction {
  static HWY_INLINE Vector<T> run(Vector<T> x) {
    if constexpr (sizeof(T) == 8) {
      return lane_by_lane<T>([](T each) { return tn_math_erf(each); }, x);
    } else {
      constexpr double kSmall[] = {1.128379166,    -0.3761262667,    0.1128359472,  -0.02685421201,
                                   0.005189087423, -0.0008016864287, 7.875875063e-5};
      constexpr double kLarge[] = {0.999593048,    0.003267270355, -0.01225283041,  0.02818740627,  -0.04365147857,
                                   0.04638958373,  -0.03186845073, 0.009579305634,  0.006637864139, -0.01041184524,
                                   0.004667028807, 0.001542911075, -0.002032798774, 9.497238351e-5, 0.0002580060988};
      const Vector<T> size = hn::Abs(x);
      const Vector<T> small = hn::Mul(x, polynomial<T>(hn::Mul(x, x), kSmall));
      const Vector<T> at = hn::Mul(hn::Sub(size, constant<T>(2.5)), constant<T>(1 / 1.5));
      const Vector<T> one = constant<T>(1);
      const Vector<T> large = hn::IfThenElse(hn::Ge(size, constant<T>(4)), one, polynomial<T>(at, kLarge));
      const Vector<T> result = hn::IfThenElse(hn::Lt(size, one), small, hn::CopySign(large, x));
      return keep_nan<T>(x, result);
    }
  }
};

// Sine or cosine. Highway's are for arguments up to 39000; those of tenon/elementary.h, whose range is not limited,
// compute the lanes with larger ones. Of tiny arguments sin(x) is x and cos(x) is 1, which Highway's miss at -0 and 0.
template <class T, bool kSine>
struct Wave {
  static HWY_INLINE Vector<T> run(Vector<T> x) {
    const Tag<T> d;
    const Vector<T> size = hn::Abs(x);
    const auto tiny = hn::Lt(size, constant<T>(sizeof(T) == 4 ? 0x1p-12 : 0x1p-27));
    const Vector<T> near = hn::IfThenElse(tiny, kSine ? x : constant<T>(1), kSine ? hn::Sin(d, x) : hn::Cos(d, x));
    const auto within = hn::Le(size, constant<T>(39000));  // not NaN
    if (HWY_LIKELY(hn::AllTrue(d, within))) return near;
    return hn::IfThenElse(within, near, far(x));
  }
  static HWY_NOINLINE Vector<T> far(Vector<T> x) {
    return lane_by_lane<T>([](double each) { return static_cast<T>(kSine ? tn_math_sin(each) : tn_math_cos(each)); },
                           x);
  }
};
template <class T>
using Sine = Wave<T, true>;
template <class T>
using Cosine = Wave<T, false>;

// a ^ b. f64 and single lanes call tenon/elementary.h. f32: 2 ^ (b log2 |a|) in f64 with polynomials (relative error
// 1e-10), then the cases of C99, F.9.4.4. Not inlined into the four vectors of the loop: it would not be faster.
template <class T>
struct Power {
  static HWY_NOINLINE Vector<T> run(Vector<T> a, Vector<T> b) {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (sizeof(T) == 4) return with_ends(a, b, of_size(hn::Abs(a), b));
#endif
    return lane_by_lane<T>([](double base, double exponent) { return static_cast<T>(tn_math_pow(base, exponent)); }, a,
                           b);
  }

 private:
#if HWY_TARGET != HWY_SCALAR
  static constexpr hn::Repartition<double, Tag<T>> kWide{};
  static constexpr hn::Rebind<T, decltype(kWide)> kHalf{};
  static constexpr hn::Rebind<int32_t, decltype(kWide)> kHalfInts{};

  // Where 0 < size < inf.
  static HWY_INLINE Vector<T> of_size(Vector<T> size, Vector<T> b) {
    const Tag<int32_t> ints;
    const auto subnormal = hn::Lt(size, constant<T>(0x1p-126));
    const auto bits = hn::BitCast(ints, hn::IfThenElse(subnormal, hn::Mul(size, constant<T>(0x1p24)), size));
    // size = m * 2 ^ k with sqrt(1/2) <= m < sqrt(2); 0x3f3504f3 is sqrt(1/2).
    auto k = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(ints, 0x3f3504f3)));
    const auto m = hn::BitCast(Tag<T>(), hn::Sub(bits, hn::ShiftLeft<23>(k)));
    k = hn::Sub(k, hn::IfThenElseZero(hn::RebindMask(ints, subnormal), hn::Set(ints, 24)));
    const auto low = half_of_size(hn::LowerHalf(kHalf, m), hn::LowerHalf(kHalfInts, k), hn::LowerHalf(kHalf, b));
    const auto high = half_of_size(hn::UpperHalf(kHalf, m), hn::UpperHalf(kHalfInts, k), hn::UpperHalf(kHalf, b));
    return hn::Combine(Tag<T>(), high, low);
  }
  // (m * 2 ^ k) ^ b. log(m) = 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1) / (m + 1).
  template <class V, class I>
  static HWY_INLINE V half_of_size(V narrow_m, I k, V b) {
    constexpr double kLogarithm[] = {1, 1 / 3., 1 / 5., 1 / 7., 1 / 9., 1 / 11., 1 / 13.};
    constexpr double kExponential[] = {1,        1,        1 / 2.,    1 / 6.,     1 / 24.,
                                       1 / 120., 1 / 720., 1 / 5040., 1 / 40320., 1 / 362880.};
    const auto m = hn::PromoteTo(kWide, narrow_m), one = constant<double>(1);
    const auto s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
    const auto log = hn::Mul(s, polynomial<double>(hn::Mul(s, s), kLogarithm));
    const auto log2 = hn::MulAdd(log, constant<double>(2 * std::numbers::log2e), hn::PromoteTo(kWide, k));
    // Beyond 160 the power is infinite or 0 in f32.
    const auto any = hn::Mul(hn::PromoteTo(kWide, b), log2);
    const auto exponent = hn::Min(hn::Max(any, constant<double>(-160)), constant<double>(160));
    const auto whole = hn::Round(exponent);
    const auto rest = hn::Mul(hn::Sub(exponent, whole), constant<double>(std::numbers::ln2));
    const hn::RebindToSigned<decltype(kWide)> ints;
    const auto biased = hn::Add(hn::PromoteTo(ints, hn::DemoteTo(kHalfInts, whole)), hn::Set(ints, 1023));
    const auto scale = hn::BitCast(kWide, hn::ShiftLeft<52>(biased));
    return hn::DemoteTo(kHalf, hn::Mul(polynomial<double>(rest, kExponential), scale));
  }

  // power: of_size(|a|, b).
  static HWY_INLINE Vector<T> with_ends(Vector<T> a, Vector<T> b, Vector<T> power) {
    const Tag<T> d;
    const auto zero = hn::Zero(d), one = constant<T>(1), inf = hn::Set(d, kInf<T>), size = hn::Abs(a);
    const auto endless = hn::Eq(size, inf);
    const auto end = hn::IfThenZeroElse(hn::Xor(endless, hn::Gt(b, zero)), inf);
    auto y = hn::IfThenElse(hn::Or(endless, hn::Eq(size, zero)), end, power);
    const auto half = hn::Mul(b, constant<T>(0.5));
    const auto whole = hn::Eq(hn::Floor(b), b);
    y = hn::IfThenElse(hn::And(whole, hn::Ne(hn::Floor(half), half)), hn::CopySign(y, a), y);  // odd
    const auto root = hn::AndNot(whole, hn::And(hn::Lt(a, zero), hn::Lt(size, inf)));
    y = hn::IfThenElse(hn::Or(root, hn::Or(hn::IsNaN(a), hn::IsNaN(b))), hn::Set(d, kNan<T>), y);
    const auto unit = hn::Or(hn::Eq(a, one), hn::And(hn::Eq(size, one), hn::Eq(hn::Abs(b), inf)));
    return hn::IfThenElse(hn::Or(unit, hn::Eq(b, zero)), one, y);
  }
#endif
};

template <class T>
Kernel choose_math(uint16_t operation, uint8_t broadcast) {
  switch (operation) {
    case TN_OP_SQRT:
      return &unary<T, Root<T>>;
    case TN_OP_EXP:
      return &unary<T, Exponential<T>>;
    case TN_OP_EXPM1:
      return &unary<T, ExponentialMinus1<T>>;
    case TN_OP_LOG:
      return &unary<T, Logarithm<T>>;
    case TN_OP_LOG1P:
      return &unary<T, Logarithm1<T>>;
    case TN_OP_TANH:
      return &unary<T, HyperbolicTangent<T>>;
    case TN_OP_ERF:
      return &unary<T, ErrorFunction<T>>;
    case TN_OP_SIN:
      return &unary<T, Sine<T>>;
    case TN_OP_COS:
      return &unary<T, Cosine<T>>;
    case TN_OP_POW:
      return choose_binary<T, Power<T>>(broadcast);
    default:
      return nullptr;
  }
}

}  // namespace

Kernel find_math(const KernelKey& key) {
  return key.wide ? choose_math<double>(key.operation, key.broadcast)
                  : choose_math<float>(key.operation, key.broadcast);
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

Kernel math_kernel(const KernelKey& key) { TENON_CHOOSE(key.isa, find_math(key)); }

}  // namespace tenon::cpu
#endif
