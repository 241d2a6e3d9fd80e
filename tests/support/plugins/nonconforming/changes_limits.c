/* prepare lowers a limit of the process. SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#define NAME "changes_limits"
#include <sys/resource.h>
#define PREPARE                          \
  struct rlimit limit;                   \
  getrlimit(RLIMIT_NOFILE, &limit);      \
  limit.rlim_cur -= limit.rlim_cur > 64; \
  setrlimit(RLIMIT_NOFILE, &limit);
#include "layer.h"
