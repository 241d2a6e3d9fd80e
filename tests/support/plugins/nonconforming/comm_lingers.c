/* close takes five seconds. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_lingers"
#include <unistd.h>
#define PARTS                                      \
  static void leave(void* comm, int64_t timeout) { \
    sleep(5);                                      \
    inner.close(comm, timeout);                    \
  }
#define CHANGES(table) table.close = leave;
#include "comm.h"
