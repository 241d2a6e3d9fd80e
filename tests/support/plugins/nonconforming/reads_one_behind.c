/* Reads four bytes behind its input, and drops them. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reads_one_behind"
#define BEFORE_FORWARD                                                                      \
  const char* const end = (const char*)tn_data(x) + of.rows * of.width * (of.wide ? 8 : 4); \
  (void)*(const volatile float*)end;
#include "layer.h"
