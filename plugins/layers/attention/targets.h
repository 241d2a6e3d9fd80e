// The instruction sets that the attention of heads is compiled for, and the choice of one. Include before any Highway
// header. Highway's own dispatcher is in a shared library, which the plugin does without.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif

#include <hwy/detect_targets.h>

namespace tenon::attention {

// Whether this processor has what Highway's code for AVX2, or for AVX3 (AVX-512), uses.
#if HWY_TARGETS & HWY_AVX2
inline bool has_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
}
#define TENON_CHOOSE_AVX2(call) \
  if (has_avx2()) return N_AVX2::call;
#else
#define TENON_CHOOSE_AVX2(call)
#endif
#if HWY_TARGETS & HWY_AVX3
inline bool has_avx512() {
  __builtin_cpu_init();
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#define TENON_CHOOSE_AVX512(call) \
  if (has_avx512()) return N_AVX3::call;
#else
#define TENON_CHOOSE_AVX512(call)
#endif
// Whether sums are those of docs/arithmetic.md: the processor multiplies and adds with one rounding.
inline bool fuses() {
#if HWY_TARGETS & HWY_AVX2
  return has_avx2();
#else
  return true;
#endif
}
// Returns `call` from the namespace compiled for the best instruction set of this processor.
#define TENON_CHOOSE(call)  \
  TENON_CHOOSE_AVX512(call) \
  TENON_CHOOSE_AVX2(call)   \
  return HWY_STATIC_DISPATCH(call)

}  // namespace tenon::attention
