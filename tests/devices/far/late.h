// The table by which tests run native kernels of the cpu on the device "far". SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#define FAR_LATE "tenon.test.late/1"
struct far_late_table {
  uint32_t size;
  uint32_t reserved;
  // [setup] Sets in `prepared` what runs `inner`, a call that works in memory of the host, later in a stream of the
  // device, on the memory behind its operands. Takes inner's binding, also on failure.
  tn_status (*prepare)(void* device, const tn_errors* errors, const tn_prepared* inner, tn_prepared* prepared);
};
