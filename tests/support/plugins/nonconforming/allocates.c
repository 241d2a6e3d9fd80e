/* Allocates memory in run. SPDX-License-Identifier: Apache-2.0 */
#define NAME "allocates"
#include <stdlib.h>
static void* volatile kept;
#define AFTER_FORWARD              \
  kept = malloc((size_t)of.width); \
  free(kept);
#include "layer.h"
