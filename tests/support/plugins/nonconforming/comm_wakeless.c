/* wake does nothing. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_wakeless"
#define PARTS \
  static void wake(void* comm) { (void)comm; }
#define CHANGES(table) table.wake = wake;
#include "comm.h"
