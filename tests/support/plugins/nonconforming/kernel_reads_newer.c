/* A kernel reads a member that the oldest host which the plugin requires does not have.
 * SPDX-License-Identifier: Apache-2.0 */
#define NAME "kernel_reads_newer"
#define REQUIRED 2
#define PREPARE \
  if (*(const volatile uint32_t*)&site->precision > 2) return TN_UNSUPPORTED;
#include "layer.h"
