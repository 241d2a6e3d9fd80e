/* A reader reads a member that the oldest host which the plugin requires does not have.
 * SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_reads_newer"
#define REQUIRED 3
#define OPENED(it) \
  if (given->needed != NULL) it->next = 0;
#include "reader.h"
