/* Refuses an input without rows. SPDX-License-Identifier: Apache-2.0 */
#define NAME "empty_fails"
#define BEFORE_FORWARD \
  if (of.rows == 0) return tn_fail(execution->errors, TN_INVALID, NULL, "no rows");
#include "layer.h"
