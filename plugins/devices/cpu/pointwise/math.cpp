// Kernels of square root, exponential, logarithm, tanh and erf.
//
// Largest error against long double, in units in the last place, measured over 7 million arguments of all magnitudes
// with each instruction set (f32 / f64): sqrt 0.5 / 0.5, exp 1.0 / 1.0, expm1 3.5 / 4.0, log 0.9 / 0.9,
// log1p 2.4 / 2.4, tanh 2.7 / 3.1, erf 2.6 / 1.2. tests/devices/pointwise_math_test.cpp checks these bounds.
// NaN gives NaN; exp(-inf) = 0, exp(inf) = inf, log(0) = log1p(-1) = -inf, tanh(inf) = erf(inf) = 1. The logarithm of a
// negative number is NaN. Highway's functions are not specified outside of their ranges, so these results are set here.
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pointwise/math.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pointwise/targets.h"
// clang-format on

#include <hwy/contrib/math/math-inl.h>

#include <cmath>
#include <limits>

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

// Highway has no erf. f32: x * P(x^2) below 1 and Q((|x| - 2.5) / 1.5) from 1 to 4, interpolated at Chebyshev nodes in
// 40 digits (relative error 1.3e-9 and 1.1e-8). f64, the type of checks, calls the C library.
template <class T>
struct ErrorFunction {
  static HWY_INLINE Vector<T> run(Vector<T> x) {
    if constexpr (sizeof(T) == 8) {
      constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(T);
      HWY_ALIGN T lane[kLanes] = {};
      hn::Store(x, Tag<T>(), lane);
      for (T& each : lane) each = std::erf(each);
      return hn::Load(Tag<T>(), lane);
    } else {
      constexpr double kSmall[] = {1.128379166,    -0.3761262667,    0.1128359472,  -0.02685421201,
                                   0.005189087423, -0.0008016864287, 7.875875063e-5};
      constexpr double kLarge[] = {0.999593048,    0.003267270355, -0.01225283041,  0.02818740627,  -0.04365147857,
                                   0.04638958373,  -0.03186845073, 0.009579305634,  0.006637864139, -0.01041184524,
                                   0.004667028807, 0.001542911075, -0.002032798774, 9.497238351e-5, 0.0002580060988};
      const Vector<T> size = hn::Abs(x);
      const Vector<T> small = hn::Mul(x, polynomial(hn::Mul(x, x), kSmall));
      const Vector<T> at = hn::Mul(hn::Sub(size, constant<T>(2.5)), constant<T>(1 / 1.5));
      const Vector<T> one = constant<T>(1);
      const Vector<T> large = hn::IfThenElse(hn::Ge(size, constant<T>(4)), one, polynomial(at, kLarge));
      const Vector<T> result = hn::IfThenElse(hn::Lt(size, one), small, hn::CopySign(large, x));
      return keep_nan<T>(x, result);
    }
  }
  template <size_t kCount>
  static HWY_INLINE Vector<T> polynomial(Vector<T> x, const double (&coefficients)[kCount]) {
    Vector<T> sum = constant<T>(coefficients[kCount - 1]);
    for (size_t i = kCount - 1; i-- > 0;) sum = hn::MulAdd(sum, x, constant<T>(coefficients[i]));
    return sum;
  }
};

template <class T>
Kernel choose_math(uint16_t operation) {
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
    default:
      return nullptr;
  }
}

}  // namespace

Kernel find_math(const KernelKey& key) {
  return key.wide ? choose_math<double>(key.operation) : choose_math<float>(key.operation);
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

Kernel math_kernel(const KernelKey& key) { TENON_CHOOSE(key.isa, find_math(key)); }

}  // namespace tenon::cpu
#endif
