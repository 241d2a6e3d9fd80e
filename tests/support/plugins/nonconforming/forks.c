/* prepare makes a copy of the process, which goes on. SPDX-License-Identifier: Apache-2.0 */
#define NAME "forks"
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>
#define PREPARE \
  if (fork() < 0) return TN_IO;
#include "layer.h"
