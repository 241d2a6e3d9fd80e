/* A fault of the calls of a device's table. SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"
#define ID TN_GEMM
#define TABLE tn_gemm_table
#define SITE tn_gemm
#define PREPARE prepare
#define AFTER \
  if (FAULT(call)) spoil(call->outputs[0]);
#include "../device.h"
