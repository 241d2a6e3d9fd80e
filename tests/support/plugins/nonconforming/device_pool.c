/* The first element of each pooling is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_pool"
#define ID TN_POOL
#define TABLE tn_pool_table
#define SITE tn_pool
#define PREPARE prepare
#include "device.h"
