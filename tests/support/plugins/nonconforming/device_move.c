/* The first element of what is moved is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_move"
#define ID TN_MOVE
#define TABLE tn_move_table
#define SITE tn_move
#define PREPARE prepare
#include "device.h"
