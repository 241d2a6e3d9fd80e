/* A fault of a kernel beside a recorded body. SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"
#define BODY
#define PREPARE \
  if (FAULT(prepared)) return TN_UNSUPPORTED;
#include "../layer.h"
