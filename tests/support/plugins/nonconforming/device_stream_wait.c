/* Waiting for a stream leaves its last copy or fill for later. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_stream_wait"
#define STREAM_WAIT(of)                  \
  if ((of) != NULL && (of)->count > 0) { \
    const int last = (of)->count - 1;    \
    const work left = (of)->list[last];  \
    (of)->count = last;                  \
    finish(of);                          \
    enqueue(of, left);                   \
  }
#include "device_streams.h"
