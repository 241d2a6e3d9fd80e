// The traits of the device's calls. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include "pointwise/kernels.h"

namespace tenon::cpu {

// TN_TRAIT_PORTABLE where the processor multiplies and adds with one rounding, as docs/arithmetic.md defines sums; 0 on
// others, and for hosts that do not know the trait.
inline uint32_t portable_trait(const tn_services* services) {
#if defined(__x86_64__)
  const bool fuses = detect_isa() >= Isa::kAvx2;
#else
  constexpr bool fuses = true;
#endif
  return fuses ? tn_portable(services) : 0U;
}
// The same of a call that takes operands of any alignment.
inline uint32_t call_traits(const tn_services* services) {
  return tn_any_alignment(services) | portable_trait(services);
}

}  // namespace tenon::cpu
