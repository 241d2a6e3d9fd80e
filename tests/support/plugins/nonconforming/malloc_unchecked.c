/* Uses memory of malloc that it did not get. SPDX-License-Identifier: Apache-2.0 */
#define NAME "malloc_unchecked"
#include <stdlib.h>
static char* volatile kept;
#define PREPARE      \
  kept = malloc(64); \
  kept[0] = 0;       \
  free(kept);
#include "layer.h"
