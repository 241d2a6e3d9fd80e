/* progress waits for five seconds, whatever its caller says. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_overstays"
#define PARTS                                                                                                     \
  static tn_status progress(void* comm, int64_t timeout, tn_comm_event* events, uint32_t most, uint32_t* count) { \
    (void)timeout;                                                                                                \
    return inner.progress(comm, 5000000, events, most, count);                                                    \
  }
#define CHANGES(table) table.progress = progress;
#include "comm.h"
