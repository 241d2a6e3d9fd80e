/* An update by rows changes the first element of the table, whether its row was read or not.
 * SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_row_update"
#define ID TN_ROW_SPARSE_TABLE
#define TABLE tn_row_sparse_table
#define SITE tn_row_sparse_update
#define PREPARE prepare_update
#include "device.h"
