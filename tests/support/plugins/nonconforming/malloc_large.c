/* Uses memory of malloc that it did not get: the one large block among hundreds of small ones, which it checks.
 * SPDX-License-Identifier: Apache-2.0 */
#define NAME "malloc_large"
#include <stdlib.h>
#define PREPARE                                                          \
  for (int i = 0; i < 301; ++i) {                                        \
    const int large = i == 150;                                          \
    volatile char* volatile kept = malloc(large ? (size_t)1 << 20 : 64); \
    if (kept == NULL && !large) return TN_OUT_OF_MEMORY;                 \
    kept[0] = 0;                                                         \
    free((void*)kept);                                                   \
  }
#include "layer.h"
