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
};
template <class T, bool kMax>
struct Most {
  static constexpr T kInfinite =
      std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  static constexpr T kLowest = std::is_floating_point_v<T> ? -kInfinite : std::numeric_limits<T>::min();
  static constexpr T kIdentity = kMax ? kLowest : kInfinite;
  using Function = Extreme<kMax>;
};

// Returns the reduction of from [columns], which begins with the identity: chain number i, of 32 (of lanes of 4 bytes)
// or 16 (of 8), takes the elements i, i + kChains, i + 2 kChains, ...; then the lower half of the chains takes the
// upper half until one is left. The order does not depend on the width of a vector. Of NaNs the result is a NaN, since
// both functions keep it.
template <class T, class R>
HWY_INLINE T reduce_row(const T* from, int64_t columns) {
  const Tag<T> d;
  using F = typename R::Function;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>())), kChains = 128 / sizeof(T);
  constexpr int kVectors = kChains / kLanes;
  Vector<T> chains[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) chains[v] = hn::Set(d, R::kIdentity);
  int64_t i = 0;
  for (; i + kChains <= columns; i += kChains) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) chains[v] = F::run(chains[v], hn::LoadU(d, from + i + v * kLanes));
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const int64_t left = columns - i - v * kLanes;
    if (left >= kLanes) {
      chains[v] = F::run(chains[v], hn::LoadU(d, from + i + v * kLanes));
    } else if (left > 0) {
      const auto present = hn::FirstN(d, static_cast<size_t>(left));
      chains[v] = hn::IfThenElse(present, F::run(chains[v], load_part(from + i + v * kLanes, left)), chains[v]);
    }
  }
  return fold<F>(d, chains);
}

// a [count, columns] -> out [count]: out[row] = reduction of a[row, :].
template <class T, template <class> class Reduction>
void reduce_rows(void* out, const void* a, const void*, const void*, int64_t count, int64_t columns) {
  using R = Reduction<T>;
  T* const to = static_cast<T*>(out);
  const T* from = static_cast<const T*>(a);
  for (int64_t row = 0; row < count; ++row, from += columns) to[row] = reduce_row<T, R>(from, columns);
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
