/* Uses memory of the host that it did not get. SPDX-License-Identifier: Apache-2.0 */
#define NAME "memory_unchecked"
#define PREPARE                                                                                           \
  const tn_memory* memory = (const tn_memory*)site->services->extension(site->services->self, TN_MEMORY); \
  void* const got = memory->allocate(memory->self, 64);                                                   \
  memset(got, 0, 64);                                                                                     \
  memory->release(memory->self, got, 64);
#include "layer.h"
