/* The first element of each resized image is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_resize"
#define ID TN_RESIZE
#define TABLE tn_resize_table
#define SITE tn_resize_site
#define PREPARE prepare
#include "device.h"
