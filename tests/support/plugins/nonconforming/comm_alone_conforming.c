/* One whose ranks a launcher would connect, as those of MPI: without one a world of one, once in a process.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>
#define NAME "comm_alone_conforming"
#define TRAITS TN_COMM_ONE_PER_PROCESS
#define PARTS                                                                                                     \
  static int opened;                                                                                              \
  static tn_status open(const tn_comm_open* given, void** comm) {                                                 \
    char address[64];                                                                                             \
    tn_comm_open other = *given;                                                                                  \
    if (given->address != NULL) return tn_fail(given->errors, TN_UNSUPPORTED, NULL, "a launcher connects ranks"); \
    if (opened) return tn_fail(given->errors, TN_UNSUPPORTED, NULL, "a process has one object in its life");      \
    snprintf(address, sizeof address, "ipc:///tmp/tenon-alone-%d", (int)getpid());                                \
    other.address = address;                                                                                      \
    const tn_status status = inner.open(&other, comm);                                                            \
    opened = status == TN_OK;                                                                                     \
    return status;                                                                                                \
  }                                                                                                               \
  static tn_status world(void* comm, tn_comm_world* to) {                                                         \
    const tn_status status = inner.world(comm, to);                                                               \
    to->traits = TRAITS;                                                                                          \
    return status;                                                                                                \
  }
#define CHANGES(table) table.open = open, table.world = world;
#include "comm.h"
