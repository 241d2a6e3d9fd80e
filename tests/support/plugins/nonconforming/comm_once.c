/* A second object of a process is refused, and no trait says so. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_once"
#define PARTS                                                                         \
  static int opened;                                                                  \
  static tn_status open(const tn_comm_open* given, void** comm) {                     \
    if (opened) return tn_fail(given->errors, TN_UNSUPPORTED, NULL, "one is enough"); \
    const tn_status status = inner.open(given, comm);                                 \
    opened = status == TN_OK;                                                         \
    return status;                                                                    \
  }
#define CHANGES(table) table.open = open;
#include "comm.h"
