/* A message of other bytes than its room is told to be well. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_room"
#define PARTS                                                                                                     \
  static tn_status progress(void* comm, int64_t timeout, tn_comm_event* events, uint32_t most, uint32_t* count) { \
    const tn_status status = inner.progress(comm, timeout, events, most, count);                                  \
    for (uint32_t i = 0; i < *count; ++i)                                                                         \
      if (events[i].status == TN_BAD_DATA) events[i].status = TN_OK;                                              \
    return status;                                                                                                \
  }
#define CHANGES(table) table.progress = progress;
#include "comm.h"
