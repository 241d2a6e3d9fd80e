/* A product with a packed matrix is wrong in its first element. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_packed"
#define ID TN_PACKED_GEMM
#define TABLE tn_packed_gemm_table
#define SITE tn_gemm
#define PREPARE prepare_multiply
#define AFTER spoil(call->outputs[0]);
#include "device.h"
