/* prepare opens a file for good. SPDX-License-Identifier: Apache-2.0 */
#define NAME "leaves_open"
#include <fcntl.h>
#define PREPARE \
  if (open("/dev/null", O_RDONLY) < 0) return TN_IO;
#include "layer.h"
