/* Plan gives the parameter another size at each second call. SPDX-License-Identifier: Apache-2.0 */
#define NAME "plan_differs"
static int plans;
#define PLAN                   \
  width.offset += ++plans % 2; \
  width.bound = width.offset;
#include "layer.h"
