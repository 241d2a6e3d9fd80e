/* prepare changes the working directory. SPDX-License-Identifier: Apache-2.0 */
#define NAME "changes_folder"
#include <unistd.h>
#define PREPARE \
  if (chdir("/proc") != 0) return TN_INTERNAL;
#include "layer.h"
