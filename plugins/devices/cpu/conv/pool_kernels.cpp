// Sums and maxima of a window, a vector of channels at a time. SPDX-License-Identifier: Apache-2.0
#include "conv/pool_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "conv/pool_kernels.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pointwise/targets.h"
// clang-format on

#include <algorithm>
#include <cstring>

#include "pointwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

// Values [from, from + a vector) of the image, of which `count` matter.
template <class T>
HWY_INLINE Vector<T> load(const PoolWindow& window, int64_t from, int64_t count) {
  const T* const at = static_cast<const T*>(window.image) + from;
  return from + lanes<T>() <= window.readable ? hn::LoadU(Tag<T>(), at) : load_part(at, count);
}
// Writes `count` values, and perhaps spare ones behind them.
template <class T>
HWY_INLINE void store(const PoolWindow& window, Vector<T> value, T* to, int64_t count, bool add) {
  const Tag<T> d;
  if (count >= lanes<T>()) {
    hn::StoreU(add ? hn::Add(hn::LoadU(d, to), value) : value, d, to);
  } else if (!add && count + window.spare >= lanes<T>()) {
    hn::StoreU(value, d, to);
  } else {
    store_part(add ? hn::Add(load_part(to, count), value) : value, to, count);
  }
}

// Calls work(number of an element) for the elements of a window, in their order.
template <class Work>
HWY_INLINE void each_element(const PoolWindow& window, Work work) {
  for (int64_t i = 0, a = window.first; i < window.count[0]; ++i, a += window.step[0])
    for (int64_t j = 0, b = a; j < window.count[1]; ++j, b += window.step[1])
      for (int64_t k = 0, c = b; k < window.count[2]; ++k, c += window.step[2]) work(c);
}

template <class T>
HWY_INLINE void sum_one(const PoolWindow& window, T* results, bool add) {
  for (int64_t c = 0; c < window.channels; c += lanes<T>()) {
    const int64_t left = std::min(window.channels - c, lanes<T>());
    Vector<T> sums = hn::Zero(Tag<T>());
    each_element(window,
                 [&](int64_t at) HWY_ATTR { sums = hn::Add(sums, load<T>(window, at * window.channels + c, left)); });
    store(window, sums, results + c, left, add);
  }
}

// Stores the first `count` lanes as int32.
template <class D>
HWY_INLINE void store_positions(D d, const PoolWindow& window, hn::Vec<D> where, int64_t count, int32_t* to) {
  HWY_ALIGN hn::TFromD<D> lanes_of[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    if (count + window.spare >= static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(where, d, to);
    hn::Store(where, d, lanes_of);
    std::memcpy(to, lanes_of, static_cast<size_t>(count) * sizeof *to);
  } else {
    hn::Store(where, d, lanes_of);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int32_t>(lanes_of[i]);
  }
}

template <class T>
HWY_INLINE void max_one(const PoolWindow& window, T* results, bool add, int32_t* positions) {
  const hn::RebindToSigned<Tag<T>> integers;
  using Integer = hn::TFromD<decltype(integers)>;
  for (int64_t c = 0; c < window.channels; c += lanes<T>()) {
    const int64_t left = std::min(window.channels - c, lanes<T>());
    Vector<T> most = load<T>(window, window.first * window.channels + c, left);
    auto where = hn::Set(integers, static_cast<Integer>(window.first));
    each_element(window, [&](int64_t at) HWY_ATTR {
      const Vector<T> x = load<T>(window, at * window.channels + c, left);
      // A NaN is larger than every number, and the first one stays.
      const auto larger = hn::AndNot(hn::Le(x, most), hn::Eq(most, most));
      most = hn::IfThenElse(larger, x, most);
      where = hn::IfThenElse(hn::RebindMask(integers, larger), hn::Set(integers, static_cast<Integer>(at)), where);
    });
    if (results != nullptr) store(window, most, results + c, left, add);
    if (positions != nullptr) store_positions(integers, window, where, left, positions + c);
  }
}

// Calls work(window, its number) for each of the windows, alone.
template <class Work>
HWY_INLINE void each_window(const PoolWindow& windows, Work work) {
  PoolWindow one = windows;
  one.spare += (windows.windows - 1) * windows.channels;  // of the windows behind it
  for (int64_t i = 0; i < windows.windows; ++i, one.first += windows.apart, one.spare -= windows.channels) work(one, i);
}

template <class T>
void sum(const PoolWindow& windows, void* results, bool add) {
  each_window(windows, [&](const PoolWindow& window, int64_t i)
                           HWY_ATTR { sum_one<T>(window, static_cast<T*>(results) + i * windows.channels, add); });
}

template <class T>
void max(const PoolWindow& windows, void* results, bool add, int32_t* positions) {
  each_window(windows, [&](const PoolWindow& window, int64_t i) HWY_ATTR {
    const int64_t at = i * windows.channels;
    max_one<T>(window, results == nullptr ? nullptr : static_cast<T*>(results) + at, add,
               positions == nullptr ? nullptr : positions + at);
  });
}

template <class T>
constexpr PoolKernels kPoolKernels = {&sum<T>, &max<T>};

}  // namespace

const PoolKernels& find_pool(bool wide) { return wide ? kPoolKernels<double> : kPoolKernels<float>; }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const PoolKernels& pool_kernels(Isa isa, bool wide) { TENON_CHOOSE(isa, find_pool(wide)); }

}  // namespace tenon::cpu
#endif
