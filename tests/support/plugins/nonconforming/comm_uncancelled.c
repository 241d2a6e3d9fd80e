/* open does not look at cancel. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_uncancelled"
#define PARTS                                                     \
  static tn_status open(const tn_comm_open* given, void** comm) { \
    tn_comm_open other = *given;                                  \
    other.cancel = NULL;                                          \
    other.deadline_ms = 5000;                                     \
    return inner.open(&other, comm);                              \
  }
#define CHANGES(table) table.open = open;
#include "comm.h"
