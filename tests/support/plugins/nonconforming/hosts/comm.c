/* A fault of opens. SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"
#define PARTS                                                                \
  static tn_status open(const tn_comm_open* given, void** comm) {            \
    if (FAULT(given)) return tn_fail(given->errors, TN_INVALID, NULL, "no"); \
    return inner.open(given, comm);                                          \
  }
#define CHANGES(table) table.open = open;
#include "../comm.h"
