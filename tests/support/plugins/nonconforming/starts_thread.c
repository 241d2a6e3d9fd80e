/* Starts a thread in run. SPDX-License-Identifier: Apache-2.0 */
#define NAME "starts_thread"
#include <pthread.h>
static void* nothing(void* argument) { return argument; }
#define AFTER_FORWARD \
  pthread_t thread;   \
  if (pthread_create(&thread, NULL, nothing, NULL) == 0) pthread_join(thread, NULL);
#include "layer.h"
