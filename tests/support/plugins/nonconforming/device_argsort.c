/* The first position is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_argsort"
#define ID TN_ARGSORT
#define TABLE tn_argsort_table
#define SITE tn_argsort
#define PREPARE prepare
#include "device.h"
