/* A fault of prepare. SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"
#define PREPARE \
  if (FAULT(gemm)) return tn_fail(errors, TN_UNSUPPORTED, NULL, "not in this host");
#include "../provider.h"
