// The kernel of TN_OP_UNIFORM: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), as
// many counters at once as a vector has lanes. tenon/program.h defines the number of each element.
// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pointwise/random.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pointwise/targets.h"
// clang-format on

#include <tenon/services.h>

#include <algorithm>

#include "pointwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

using Words = Vector<uint32_t>;

// The high 32 bits of the products of 32-bit words.
HWY_INLINE Words high_product(Words a, Words b) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(Tag<uint32_t>(), static_cast<uint32_t>(uint64_t{hn::GetLane(a)} * hn::GetLane(b) >> 32));
#else
  const Tag<uint32_t> d;
  const hn::Repartition<uint64_t, Tag<uint32_t> > d64;
  const auto odd_to_even = [&](Words v) { return hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, v))); };
  const Words even = hn::BitCast(d, hn::ShiftRight<32>(hn::MulEven(a, b)));
  const Words odd = hn::BitCast(d, hn::MulEven(odd_to_even(a), b));
  return hn::OddEven(odd, even);
#endif
}

// out [4 * lanes]: numbers in [0, 1) in the order of the elements, four for each counter {first + lane, draw, step}.
HWY_INLINE void draw_block(const tn_random& random, uint32_t draw, uint32_t first, float* out) {
  const Tag<uint32_t> d;
  const Words m0 = hn::Set(d, 0xD2511F53U);
  const Words m1 = hn::Set(d, 0xCD9E8D57U);
  Words c0 = hn::Iota(d, first);
  Words c1 = hn::Set(d, draw);
  Words c2 = hn::Set(d, static_cast<uint32_t>(random.step));
  Words c3 = hn::Set(d, static_cast<uint32_t>(random.step >> 32));
  auto key0 = static_cast<uint32_t>(random.seed);
  auto key1 = static_cast<uint32_t>(random.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const Words high0 = high_product(c0, m0);
    const Words high1 = high_product(c2, m1);
    const Words low0 = hn::Mul(c0, m0);
    const Words low1 = hn::Mul(c2, m1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, key0));
    c1 = low1;
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, key1));
    c3 = low0;
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  const Tag<float> df;
  const auto unit = [&](Words word) {
    const auto whole = hn::BitCast(Tag<int32_t>(), hn::ShiftRight<8>(word));
    return hn::Mul(hn::ConvertTo(df, whole), hn::Set(df, 0x1p-24F));
  };
  hn::StoreInterleaved4(unit(c0), unit(c1), unit(c2), unit(c3), df, out);
}

// out [count]: out[i] = draw *b of element *c + i; a: tn_random, b: uint32, c: int64.
template <class T>
void uniform(void* out, const void* a, const void* b, const void* c, int64_t count, int64_t) {
  const tn_random random = *static_cast<const tn_random*>(a);
  const uint32_t draw = *static_cast<const uint32_t*>(b);
  const int64_t start = *static_cast<const int64_t*>(c);
  T* to = static_cast<T*>(out);
  const int64_t block = 4 * lanes<float>();
  int64_t skip = start % 4;  // numbers of the first counter that precede out[0]
  auto counter = static_cast<uint32_t>(start / 4);
  HWY_ALIGN float numbers[4 * HWY_MAX_BYTES / sizeof(float)];
  while (count > 0) {
    const int64_t made = std::min(block - skip, count);
    draw_block(random, draw, counter, numbers);
    std::copy_n(numbers + skip, made, to);
    to += made;
    count -= made;
    counter += static_cast<uint32_t>(block / 4);
    skip = 0;
  }
}

}  // namespace

Kernel find_uniform(bool wide) { return wide ? &uniform<double> : &uniform<float>; }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

Kernel uniform_kernel(Isa isa, bool wide) { TENON_CHOOSE(isa, find_uniform(wide)); }

}  // namespace tenon::cpu
#endif
