/* The gradient of the input is half if that of the parameter is not wanted. SPDX-License-Identifier: Apache-2.0 */
#define NAME "frozen_differs"
#define AFTER_BACKWARD                                      \
  if (call->outputs[1] == NULL && call->outputs[0] != NULL) \
    for (int64_t i = 0; i < of.rows * of.width; ++i) put(call->outputs[0], i, get(call->outputs[0], i) / 2);
#include "layer.h"
