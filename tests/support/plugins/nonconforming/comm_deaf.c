/* No silence is too long. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_deaf"
#define PARTS                                                     \
  static tn_status open(const tn_comm_open* given, void** comm) { \
    tn_comm_open other = *given;                                  \
    other.silence_ms = 0;                                         \
    return inner.open(&other, comm);                              \
  }
#define CHANGES(table) table.open = open;
#include "comm.h"
