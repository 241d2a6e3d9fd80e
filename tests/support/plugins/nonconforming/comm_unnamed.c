/* The report of a failure names no rank. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_unnamed"
#define PARTS                                                        \
  static tn_status open(const tn_comm_open* given, void** comm) {    \
    const tn_status status = inner.open(given, comm);                \
    if (status == TN_OK) return TN_OK;                               \
    return tn_fail(given->errors, status, NULL, "somebody missing"); \
  }
#define CHANGES(table) table.open = open;
#include "comm.h"
