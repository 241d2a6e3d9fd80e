/* prepare starts a thread. SPDX-License-Identifier: Apache-2.0 */
#define NAME "thread_in_prepare"
#include <pthread.h>
static void* nothing(void* argument) { return argument; }
#define PREPARE     \
  pthread_t thread; \
  if (pthread_create(&thread, NULL, nothing, NULL) == 0) pthread_join(thread, NULL);
#include "layer.h"
