/* open leaves a handler of signals. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_signals"
#include <signal.h>
#define PARTS                                                     \
  static void handler(int number) { (void)number; }               \
  static tn_status open(const tn_comm_open* given, void** comm) { \
    signal(SIGUSR2, handler);                                     \
    return inner.open(given, comm);                               \
  }
#define CHANGES(table) table.open = open;
#include "comm.h"
