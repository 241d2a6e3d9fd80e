/* The first element of each product is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_gemm"
#define ID TN_GEMM
#define TABLE tn_gemm_table
#define SITE tn_gemm
#define PREPARE prepare
#include "device.h"
