/* All messages are on one channel. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_channels"
#define PARTS                                                                               \
  static tn_status send(void* comm, const tn_comm_message* message, uint64_t* request) {    \
    tn_comm_message other = *message;                                                       \
    other.channel = 0;                                                                      \
    return inner.send(comm, &other, request);                                               \
  }                                                                                         \
  static tn_status receive(void* comm, const tn_comm_message* message, uint64_t* request) { \
    tn_comm_message other = *message;                                                       \
    other.channel = 0;                                                                      \
    return inner.receive(comm, &other, request);                                            \
  }
#define CHANGES(table) table.send = send, table.receive = receive;
#include "comm.h"
