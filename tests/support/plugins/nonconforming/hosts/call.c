/* A fault of a run. SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"
#define AFTER_FORWARD \
  if (FAULT(x)) put(y, 0, 0);
#include "../layer.h"
