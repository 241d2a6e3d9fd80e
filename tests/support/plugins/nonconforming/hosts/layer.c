/* A fault of plan. SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"
#define PLAN \
  if (FAULT(planner)) return tn_fail(planner->errors, TN_UNSUPPORTED, NULL, "not in this host");
#include "../layer.h"
