/* The first element of what is computed over segments is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_segment"
#define ID TN_SEGMENT
#define TABLE tn_segment_table
#define SITE tn_segment
#define PREPARE prepare
#include "device.h"
