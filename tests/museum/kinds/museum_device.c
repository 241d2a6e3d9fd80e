/* An exhibit in C: a device in plain loops, with the memory of the host ("museum.near") and with memory of its own
 * ("museum.far"). rows.h has the tables of rows. SPDX-License-Identifier: Apache-2.0 */
#include "tables.h"

static const char* const tables[] = {TN_GEMM,    TN_POINTWISE,        TN_GEMM_EPILOGUE, TN_GATHER, TN_MOVE,
                                     TN_SEGMENT, TN_ROW_SPARSE_TABLE, TN_NATIVE,        NULL};

static const void* extension(void* user, const char* id) {
  const void* const values[] = {&gemm_table, &pointwise_table, &epilogue_table,   &gather_table,
                                &move_table, &segment_table,   &row_sparse_table, &native_table};
  (void)user;
  for (int i = 0; tables[i] != NULL; ++i)
    if (strcmp(id, tables[i]) == 0) return values[i];
  return NULL;
}

DEVICE(near, "Plain loops over the memory of the host", 0);
DEVICE(far, "Plain loops over memory that the host cannot address", 1);

static const tn_device_type* const devices[] = {&near_type, &far_type};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, 2, 0},
                                 .id = "museum.device",
                                 .version = "1.0.0",
                                 .doc = "An exhibit: two devices",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .devices_count = 2,
                                 .devices = devices};

const tn_plugin* tenon_plugin(void) { return &plugin; }
