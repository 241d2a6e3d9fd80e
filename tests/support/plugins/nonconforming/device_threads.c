/* A product depends on the number of threads. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_threads"
#define ID TN_GEMM
#define TABLE tn_gemm_table
#define SITE tn_gemm
#define PREPARE prepare
#define AFTER                             \
  if (execution->parallel->workers > 1) { \
    spoil(call->outputs[0]);              \
  }
#include "device.h"
