/* The first prefix sum is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_prefix_sum"
#define ID TN_PREFIX_SUM
#define TABLE tn_prefix_sum_table
#define SITE tn_prefix_sum
#define PREPARE prepare
#include "device.h"
