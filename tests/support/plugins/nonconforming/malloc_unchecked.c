/* Uses memory of malloc that it did not get. SPDX-License-Identifier: Apache-2.0 */
#define NAME "malloc_unchecked"
#define PREPARE                    \
  char* volatile got = malloc(64); \
  memset(got, 0, 64);              \
  free(got);
#include "layer.h"
