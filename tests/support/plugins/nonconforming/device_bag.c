/* The first sum of gathered rows is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_bag"
#define ID TN_GATHER
#define TABLE tn_gather_table
#define SITE tn_gather
#define PREPARE prepare
#define ONLY site->op == TN_GATHER_SUM
#include "device.h"
