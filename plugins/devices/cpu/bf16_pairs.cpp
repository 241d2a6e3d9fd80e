// SPDX-License-Identifier: Apache-2.0
#include "bf16_pairs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bf16_pairs.cpp"
// clang-format off: Highway needs this order
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pointwise/targets.h"
// clang-format on

#include "pointwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

// The bits of x, whose upper halves are those of the nearest bfloat16 numbers.
HWY_INLINE Vector<uint32_t> rounded(Vector<float> x) {
  const Tag<uint32_t> d;
  const Vector<uint32_t> bits = hn::BitCast(d, x);
  const Vector<uint32_t> odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const Vector<uint32_t> nearest = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fff)));
  const Vector<uint32_t> quiet = hn::Or(bits, hn::Set(d, 0x400000));
  return hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(x)), quiet, nearest);
}
HWY_INLINE Vector<uint32_t> joined(Vector<uint32_t> lower, Vector<uint32_t> upper) {
  const Tag<uint32_t> d;
  return hn::Or(hn::ShiftRight<16>(lower), hn::And(upper, hn::Set(d, 0xffff0000)));
}
HWY_INLINE Vector<uint32_t> pairs_from(Vector<float> lower, Vector<float> upper) {
  return joined(rounded(lower), rounded(upper));
}

// A pair of two numbers.
uint32_t pair_from(float lower, float upper) {
  return hn::GetLane(pairs_from(hn::Set(Tag<float>(), lower), hn::Set(Tag<float>(), upper)));
}

void along(const float* from, int64_t rows, int64_t columns, uint32_t* to) {
  const Tag<float> d;
  const int64_t step = lanes<float>();
  for (int64_t row = 0; row < rows; ++row, from += columns, to += pairs_of(columns)) {
    int64_t c = 0;
    for (; c + 2 * step <= columns; c += 2 * step) {
      Vector<float> lower, upper;
      hn::LoadInterleaved2(d, from + c, lower, upper);
      hn::StoreU(pairs_from(lower, upper), Tag<uint32_t>(), to + c / 2);
    }
    for (; c < columns; c += 2) to[c / 2] = pair_from(from[c], c + 1 < columns ? from[c + 1] : 0.0F);
  }
}

void down(const float* from, int64_t rows, int64_t columns, uint32_t* to) {
  const Tag<float> d;
  const int64_t step = lanes<float>();
  for (int64_t row = 0; row < rows; row += 2, to += columns) {
    const float* const first = from + row * columns;
    const bool both = row + 1 < rows;
    int64_t c = 0;
    for (; c + step <= columns; c += step) {
      const Vector<float> upper = both ? hn::LoadU(d, first + columns + c) : hn::Zero(d);
      hn::StoreU(pairs_from(hn::LoadU(d, first + c), upper), Tag<uint32_t>(), to + c);
    }
    for (; c < columns; ++c) to[c] = pair_from(first[c], both ? first[columns + c] : 0.0F);
  }
}

constexpr PairKernels kPairKernels = {&along, &down};

}  // namespace

const PairKernels& find_pair_kernels() { return kPairKernels; }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const PairKernels& pair_kernels(Isa isa) { TENON_CHOOSE(isa, find_pair_kernels()); }

}  // namespace tenon::cpu
#endif
