/* Reads the result of the run before. SPDX-License-Identifier: Apache-2.0 */
#define NAME "keeps_output"
#define BEFORE_FORWARD                       \
  static const volatile unsigned char* kept; \
  if (kept != NULL) (void)*kept;             \
  kept = tn_data(y);
#include "layer.h"
