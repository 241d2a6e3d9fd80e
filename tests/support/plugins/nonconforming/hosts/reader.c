/* A fault of open. SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"
#define OPENED(it) \
  if (FAULT(given->services)) it->values[0] = 0;
#include "../reader.h"
