/* The program after a product is wrong in its first element. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_epilogue"
#define ID TN_GEMM_EPILOGUE
#define TABLE tn_gemm_epilogue_table
#define SITE tn_gemm_epilogue
#define PREPARE prepare
#define AFTER spoil(call->outputs[1]);
#include "device.h"
