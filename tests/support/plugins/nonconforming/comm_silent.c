/* A lost rank is no event. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_silent"
#define PARTS                                                                                                     \
  static tn_status progress(void* comm, int64_t timeout, tn_comm_event* events, uint32_t most, uint32_t* count) { \
    const tn_status status = inner.progress(comm, timeout, events, most, count);                                  \
    for (uint32_t i = 0; i < *count; ++i)                                                                         \
      if (events[i].kind == TN_COMM_LOST) events[i--] = events[--*count];                                         \
    return status;                                                                                                \
  }
#define CHANGES(table) table.progress = progress;
#include "comm.h"
