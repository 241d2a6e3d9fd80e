/* open writes its result when it fails. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_writes"
#define PARTS                                                     \
  static tn_status open(const tn_comm_open* given, void** comm) { \
    const tn_status status = inner.open(given, comm);             \
    if (status != TN_OK) *comm = NULL;                            \
    return status;                                                \
  }
#define CHANGES(table) table.open = open;
#include "comm.h"
