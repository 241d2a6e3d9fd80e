/* A gradient of 0 gives NaN. SPDX-License-Identifier: Apache-2.0 */
#define NAME "updater_zero"
#define MORE \
  {TN_OP_DIV, TN_FLOAT, 0, 1, 1, -1, 0}, { TN_OP_MUL, TN_FLOAT, 0, 7, 8, -1, 0 }
#include "updater.h"
