/* world says that messages have at most 1000 bytes. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_small"
#define PARTS                                             \
  static tn_status world(void* comm, tn_comm_world* to) { \
    const tn_status status = inner.world(comm, to);       \
    to->most_bytes = 1000;                                \
    return status;                                        \
  }
#define CHANGES(table) table.world = world;
#include "comm.h"
