/* The first element of each convolution is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_conv"
#define ID TN_CONV
#define TABLE tn_conv_table
#define SITE tn_conv
#define PREPARE prepare
#include "device.h"
