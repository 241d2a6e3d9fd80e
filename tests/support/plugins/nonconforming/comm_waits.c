/* A send of many bytes waits for its end. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_waits"
#define PARTS                                                                                                     \
  static tn_comm_event kept[64];                                                                                  \
  static uint32_t kept_count;                                                                                     \
  static tn_status send(void* comm, const tn_comm_message* message, uint64_t* request) {                          \
    const tn_status status = inner.send(comm, message, request);                                                  \
    for (int ended = status != TN_OK || message->bytes < 2000000; !ended;) {                                      \
      uint32_t count = 0;                                                                                         \
      if (inner.progress(comm, 1000, kept + kept_count, 64 - kept_count, &count) != TN_OK) break;                 \
      for (uint32_t i = 0; i < count; ++i) ended |= kept[kept_count + i].request == *request;                     \
      kept_count += count;                                                                                        \
    }                                                                                                             \
    return status;                                                                                                \
  }                                                                                                               \
  static tn_status progress(void* comm, int64_t timeout, tn_comm_event* events, uint32_t most, uint32_t* count) { \
    if (kept_count == 0) return inner.progress(comm, timeout, events, most, count);                               \
    *count = 1;                                                                                                   \
    events[0] = kept[--kept_count];                                                                               \
    return TN_OK;                                                                                                 \
  }
#define CHANGES(table) table.send = send, table.progress = progress;
#include "comm.h"
