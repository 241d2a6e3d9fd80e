/* The first element of the rows of a gradient is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_coalesce"
#define ID TN_ROW_SPARSE_TABLE
#define TABLE tn_row_sparse_table
#define SITE tn_coalesce
#define PREPARE prepare_coalesce
#include "device.h"
