// How one of the instruction sets that Highway's code is compiled for is chosen; CMakeLists.txt leaves some out.
//
// Highway's own dispatcher is in libhwy, which Debian ships only as a shared library. The kernels use nothing else of
// it, so the macros below choose among the compiled namespaces, and the plugin does not need libhwy at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hwy/detect_targets.h>

#include "pointwise/kernels.h"

#if HWY_TARGETS & HWY_AVX3
#define TENON_CHOOSE_AVX512(isa, call) \
  if ((isa) == ::tenon::cpu::Isa::kAvx512) return N_AVX3::call;
#else
#define TENON_CHOOSE_AVX512(isa, call)
#endif
#if HWY_TARGETS & HWY_AVX2
#define TENON_CHOOSE_AVX2(isa, call) \
  if ((isa) >= ::tenon::cpu::Isa::kAvx2) return N_AVX2::call;
#else
#define TENON_CHOOSE_AVX2(isa, call)
#endif
// Returns `call` from the namespace compiled for `isa`, or the best one below it.
#define TENON_CHOOSE(isa, call)  \
  static_cast<void>(isa);        \
  TENON_CHOOSE_AVX512(isa, call) \
  TENON_CHOOSE_AVX2(isa, call)   \
  return HWY_STATIC_DISPATCH(call)
