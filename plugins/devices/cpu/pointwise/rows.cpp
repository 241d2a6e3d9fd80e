// Kernels over rows: reductions along rows, spreading over a tile, indices. SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pointwise/rows.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pointwise/targets.h"
// clang-format on

#include <algorithm>
#include <limits>

#include "pointwise/loops-inl.h"
#include "pointwise/split_passes.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

template <class T>
struct Sum {
  static constexpr T kIdentity = T{0};
  using Function = Plus;
  static HWY_INLINE T fold(Vector<T> v) { return hn::GetLane(hn::SumOfLanes(Tag<T>(), v)); }
};
template <class T, bool kMax>
struct Most {
  static constexpr T kInfinite =
      std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  static constexpr T kLowest = std::is_floating_point_v<T> ? -kInfinite : std::numeric_limits<T>::min();
  static constexpr T kIdentity = kMax ? kLowest : kInfinite;
  using Function = Extreme<kMax>;
  static HWY_INLINE T fold(Vector<T> v) {
    const Tag<T> d;
    if constexpr (std::is_floating_point_v<T>)
      if (!hn::AllFalse(d, hn::IsNaN(v))) return std::numeric_limits<T>::quiet_NaN();
    return hn::GetLane(kMax ? hn::MaxOfLanes(d, v) : hn::MinOfLanes(d, v));
  }
};

// Returns the reduction of from [columns], more than a vector. Four accumulators are folded at the end; the order
// depends on `columns` and the instruction set alone.
template <class T, class R>
HWY_INLINE T reduce_row(const T* from, int64_t columns) {
  const Tag<T> d;
  const int64_t step = lanes<T>();
  Vector<T> v0 = hn::Set(d, R::kIdentity), v1 = v0, v2 = v0, v3 = v0;
  int64_t i = 0;
  for (; i + 4 * step <= columns; i += 4 * step) {
    v0 = R::Function::run(v0, hn::LoadU(d, from + i));
    v1 = R::Function::run(v1, hn::LoadU(d, from + i + step));
    v2 = R::Function::run(v2, hn::LoadU(d, from + i + 2 * step));
    v3 = R::Function::run(v3, hn::LoadU(d, from + i + 3 * step));
  }
  for (; i + step <= columns; i += step) v0 = R::Function::run(v0, hn::LoadU(d, from + i));
  if (i < columns) {
    const auto present = hn::FirstN(d, static_cast<size_t>(columns - i));
    v1 = hn::IfThenElse(present, R::Function::run(v1, load_part(from + i, columns - i)), v1);
  }
  return R::fold(R::Function::run(R::Function::run(v0, v1), R::Function::run(v2, v3)));
}

// a [count, columns] -> out [count]: out[row] = reduction of a[row, :].
template <class T, template <class> class Reduction>
void reduce_rows(void* out, const void* a, const void*, const void*, int64_t count, int64_t columns) {
  using R = Reduction<T>;
  T* const to = static_cast<T*>(out);
  const T* from = static_cast<const T*>(a);
  const Tag<T> d;
  if (columns == 0) {
    std::fill_n(to, count, R::kIdentity);
  } else if (columns <= lanes<T>()) {
    const auto present = hn::FirstN(d, static_cast<size_t>(columns));
    const Vector<T> identity = hn::Set(d, R::kIdentity);
    for (int64_t row = 0; row < count; ++row, from += columns)
      to[row] = R::fold(hn::IfThenElse(present, load_part(from, columns), identity));
  } else {
    for (int64_t row = 0; row < count; ++row, from += columns) to[row] = reduce_row<T, R>(from, columns);
  }
}

template <class T>
using Maximum = Most<T, true>;
template <class T>
using Minimum = Most<T, false>;

template <class T>
Kernel choose_row(uint16_t operation, uint8_t kind) {
  using I = hwy::MakeSigned<T>;
  if (operation == TN_OP_REDUCE_SUM) return kind == TN_FLOAT ? &reduce_rows<T, Sum> : nullptr;
  const bool max = operation == TN_OP_REDUCE_MAX;
  if (kind == TN_FLOAT) return max ? &reduce_rows<T, Maximum> : &reduce_rows<T, Minimum>;
  return max ? &reduce_rows<I, Maximum> : &reduce_rows<I, Minimum>;
}

// a [count] -> out [count, columns]: out[row, :] = a[row]. Stores whole vectors: the excess of a row is overwritten by
// the next row, that of the last one lies in the slack of the register.
template <class T>
void spread_rows(void* out, const void* a, const void*, const void*, int64_t count, int64_t columns) {
  T* to = static_cast<T*>(out);
  const T* const from = static_cast<const T*>(a);
  const int64_t step = lanes<T>();
  const Tag<T> d;
  for (int64_t row = 0; row < count; ++row, to += columns) {
    const Vector<T> value = hn::Set(d, from[row]);
    for (int64_t i = 0; i < columns; i += step) hn::StoreU(value, d, to + i);
  }
}

// a [columns] -> out [count, columns]: out[row, :] = a[:]. The first row is copied from a, the others from the first.
template <class T>
void spread_columns(void* out, const void* a, const void*, const void*, int64_t count, int64_t columns) {
  T* const first = static_cast<T*>(out);
  if (count == 0 || columns == 0) return;
  std::memcpy(first, a, static_cast<size_t>(columns) * sizeof(T));
  for (int64_t row = 1; row < count; ++row)
    std::memcpy(first + row * columns, first, static_cast<size_t>(columns) * sizeof(T));
}

// out [count] int lanes: out[i] = *a + i; a: one int64.
template <class T>
void index(void* out, const void* a, const void*, const void*, int64_t count, int64_t) {
  using I = hwy::MakeSigned<T>;
  I* const to = static_cast<I*>(out);
  const I start = static_cast<I>(*static_cast<const int64_t*>(a));
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<I>(start + static_cast<I>(i));
}

}  // namespace

Kernel find_row(bool wide, uint16_t operation, uint8_t kind) {
  return wide ? choose_row<double>(operation, kind) : choose_row<float>(operation, kind);
}
Kernel find_spread_rows(bool wide) { return wide ? &spread_rows<double> : &spread_rows<float>; }
Kernel find_spread_columns(bool wide) { return wide ? &spread_columns<double> : &spread_columns<float>; }
Kernel find_index(bool wide) { return wide ? &index<double> : &index<float>; }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

Kernel row_kernel(Isa isa, bool wide, uint16_t operation, uint8_t kind) {
  TENON_CHOOSE(isa, find_row(wide, operation, kind));
}
Kernel spread_rows_kernel(Isa isa, bool wide) { TENON_CHOOSE(isa, find_spread_rows(wide)); }
Kernel spread_columns_kernel(Isa isa, bool wide) { TENON_CHOOSE(isa, find_spread_columns(wide)); }
Kernel index_kernel(Isa isa, bool wide) { TENON_CHOOSE(isa, find_index(wide)); }

}  // namespace tenon::cpu
#endif
