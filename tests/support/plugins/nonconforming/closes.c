/* prepare closes descriptors that are not its own. SPDX-License-Identifier: Apache-2.0 */
#define NAME "closes"
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>
#define PREPARE \
  for (int descriptor = 3; descriptor < 64; ++descriptor) close(descriptor);
#include "layer.h"
