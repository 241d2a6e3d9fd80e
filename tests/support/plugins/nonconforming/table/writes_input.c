/* Calls of a table write to their first input the byte that is there, which another thread might read meanwhile. The
 * build defines NAME and the table. SPDX-License-Identifier: Apache-2.0 */
#define AFTER                                                                                \
  if (call->inputs_count > 0 && call->inputs[0] != NULL && tn_elements(call->inputs[0]) > 0) \
    *(volatile char*)tn_data(call->inputs[0]) = *(const volatile char*)tn_data(call->inputs[0]);
#include "../device.h"
