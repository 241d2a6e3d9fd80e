/* A product of gathered rows is wrong in its first element. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_gather_gemm"
#define ID TN_GATHER_GEMM
#define TABLE tn_gather_gemm_table
#define SITE tn_gather_gemm
#define PREPARE prepare
#include "device.h"
