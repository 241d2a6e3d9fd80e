// Folds and combines partial results of global reductions. SPDX-License-Identifier: Apache-2.0
#include "pointwise/reduce.h"

#include <tenon/program.h>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace tenon::cpu {

namespace {

// Reductions. T: the type of a lane; Carry: the type in which lanes and partial results are joined.
template <class T>
struct Sum {
  using Carry = double;
  static constexpr T kIdentity = T{0};
  static Carry join(Carry a, Carry b) { return a + b; }
};
template <class T, bool kMax>
struct Most {
  using Carry = T;
  static constexpr T kHigh =
      std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  static constexpr T kLow = std::is_floating_point_v<T> ? -kHigh : std::numeric_limits<T>::min();
  static constexpr T kIdentity = kMax ? kLow : kHigh;
  static Carry join(Carry a, Carry b) { return (kMax ? b < a : a < b) || a != a ? a : b; }
};

// Calls f(reduction, lane) with values of the types that belong to a fold.
template <class F>
void visit(const Fold& fold, F&& f) {
  const auto typed = [&](auto lane) {
    using T = decltype(lane);
    if (fold.operation == TN_OP_REDUCE_MAX) return f(Most<T, true>(), lane);
    if (fold.operation == TN_OP_REDUCE_MIN) return f(Most<T, false>(), lane);
    return f(Sum<T>(), lane);
  };
  if (fold.kind == TN_FLOAT) return fold.wide ? typed(double{}) : typed(float{});
  return fold.wide ? typed(int64_t{}) : typed(int32_t{});
}

// Reduces from [count] with four accumulators, so that an addition does not wait for the one before it.
template <class R, class From>
typename R::Carry joined(const From* from, int64_t count) {
  using Carry = typename R::Carry;
  Carry runs[4] = {Carry{R::kIdentity}, Carry{R::kIdentity}, Carry{R::kIdentity}, Carry{R::kIdentity}};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (int k = 0; k < 4; ++k) runs[k] = R::join(runs[k], static_cast<Carry>(from[i + k]));
  for (; i < count; ++i) runs[0] = R::join(runs[0], static_cast<Carry>(from[i]));
  return R::join(R::join(runs[0], runs[1]), R::join(runs[2], runs[3]));
}

// from [rows, columns] -> elements [first, last) of to [columns] = the reduction of each column over the rows in order.
// A strip of 64 columns at a time, so that memory is read along rows.
template <class R, class T>
void join_columns(const T* from, int64_t rows, int64_t columns, int64_t first, int64_t last, T* to) {
  using Carry = typename R::Carry;
  constexpr int64_t kStrip = 64;
  for (int64_t c = first; c < last; c += kStrip) {
    const int64_t width = std::min(kStrip, last - c);
    Carry carry[kStrip];
    std::fill_n(carry, width, Carry{R::kIdentity});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t k = 0; k < width; ++k) carry[k] = R::join(carry[k], static_cast<Carry>(from[r * columns + c + k]));
    for (int64_t k = 0; k < width; ++k) to[c + k] = static_cast<T>(carry[k]);
  }
}

}  // namespace

void fill_identity(const Fold& fold, void* lanes, int64_t count) {
  visit(fold, [&](auto reduction, auto lane) {
    std::fill_n(static_cast<decltype(lane)*>(lanes), count, decltype(reduction)::kIdentity);
  });
}

void fold_scalar(const Fold& fold, const void* lanes, int64_t count, void* partial) {
  visit(fold, [&](auto reduction, auto lane) {
    using R = decltype(reduction);
    *static_cast<typename R::Carry*>(partial) = joined<R>(static_cast<const decltype(lane)*>(lanes), count);
  });
}

void fold_columns(const Fold& fold, const void* lanes, int64_t rows, int64_t columns, void* partial) {
  visit(fold, [&](auto reduction, auto lane) {
    using T = decltype(lane);
    join_columns<decltype(reduction)>(static_cast<const T*>(lanes), rows, columns, 0, columns,
                                      static_cast<T*>(partial));
  });
}

void combine_scalars(const Fold& fold, const void* partials, int64_t count, void* result) {
  visit(fold, [&](auto reduction, auto lane) {
    using R = decltype(reduction);
    using Carry = typename R::Carry;
    // Partial scalars are 8 bytes apart, whatever their type.
    const auto* bytes = static_cast<const unsigned char*>(partials);
    Carry carry{R::kIdentity};
    for (int64_t i = 0; i < count; ++i) carry = R::join(carry, *reinterpret_cast<const Carry*>(bytes + 8 * i));
    *static_cast<decltype(lane)*>(result) = static_cast<decltype(lane)>(carry);
  });
}

void combine_columns(const Fold& fold, const void* partials, int64_t rows, int64_t columns, int64_t first, int64_t last,
                     void* result) {
  visit(fold, [&](auto reduction, auto lane) {
    using T = decltype(lane);
    join_columns<decltype(reduction)>(static_cast<const T*>(partials), rows, columns, first, last,
                                      static_cast<T*>(result));
  });
}

}  // namespace tenon::cpu
