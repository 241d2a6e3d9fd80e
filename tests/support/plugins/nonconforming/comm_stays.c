/* abort never ends. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_stays"
#define PARTS                                   \
  static void leave(void* comm, int32_t code) { \
    (void)comm;                                 \
    (void)code;                                 \
    for (;;) continue;                          \
  }
#define CHANGES(table) table.abort = leave;
#include "comm.h"
