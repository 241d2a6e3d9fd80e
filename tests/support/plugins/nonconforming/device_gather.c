/* The first element of rows that are gathered, or added, is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_gather"
#define ID TN_GATHER
#define TABLE tn_gather_table
#define SITE tn_gather
#define PREPARE prepare
#include "device.h"
