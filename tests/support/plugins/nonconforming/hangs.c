/* Does not return from run. SPDX-License-Identifier: Apache-2.0 */
#define NAME "hangs"
#define AFTER_FORWARD                        \
  for (volatile int forever = 1; forever;) { \
  }
#include "layer.h"
