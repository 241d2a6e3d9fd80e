/* Reads the operand of the run before. SPDX-License-Identifier: Apache-2.0 */
#define NAME "keeps_pointer"
#define BEFORE_FORWARD                       \
  static const volatile unsigned char* kept; \
  if (kept != NULL) (void)*kept;             \
  kept = tn_data(x);
#include "layer.h"
