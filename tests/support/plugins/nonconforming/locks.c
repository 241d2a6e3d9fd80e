/* Locks a mutex in run. SPDX-License-Identifier: Apache-2.0 */
#define NAME "locks"
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#define AFTER_FORWARD         \
  pthread_mutex_lock(&mutex); \
  pthread_mutex_unlock(&mutex);
#include "layer.h"
