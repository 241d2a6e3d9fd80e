/* progress gives one event more than there is room for. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_overflows"
#define PARTS                                                                                                     \
  static tn_status progress(void* comm, int64_t timeout, tn_comm_event* events, uint32_t most, uint32_t* count) { \
    return inner.progress(comm, timeout, events, most + 1, count);                                                \
  }
#define CHANGES(table) table.progress = progress;
#include "comm.h"
