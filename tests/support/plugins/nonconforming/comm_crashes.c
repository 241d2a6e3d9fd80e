/* receive crashes. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_crashes"
#define PARTS                                                                               \
  static tn_status receive(void* comm, const tn_comm_message* message, uint64_t* request) { \
    volatile int* const nowhere = NULL;                                                     \
    *nowhere = 1;                                                                           \
    return inner.receive(comm, message, request);                                           \
  }
#define CHANGES(table) table.receive = receive;
#include "comm.h"
