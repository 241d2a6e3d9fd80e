/* A fault of record. SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"
#define RECORD \
  if (FAULT(recorder)) return tn_fail(recorder->errors, TN_UNSUPPORTED, NULL, "not in this host");
#include "../updater.h"
