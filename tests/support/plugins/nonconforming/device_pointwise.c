/* The first element that each program writes is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_pointwise"
#define ID TN_POINTWISE
#define TABLE tn_pointwise_table
#define SITE tn_pointwise_site
#define PREPARE prepare
#include "device.h"
