/* prepare writes to 100 GB of memory, whether it got them or not. SPDX-License-Identifier: Apache-2.0 */
#define NAME "allocates_much"
#include <stdlib.h>
#define PREPARE                                             \
  volatile char* volatile kept = malloc((size_t)100 << 30); \
  for (size_t i = 0; i < (size_t)100 << 30; i += 4096) kept[i] = 1;
#include "layer.h"
