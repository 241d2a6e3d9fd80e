/* States that any alignment will do, and crashes where an input is not at a multiple of 64 bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#define NAME "needs_alignment"
#define PREPARE prepared->traits = TN_TRAIT_ANY_ALIGNMENT;
#define BEFORE_FORWARD \
  if ((uintptr_t)tn_data(call->inputs[0]) % 64 != 0) abort();
#include "layer.h"
