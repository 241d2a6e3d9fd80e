/* The gradient of the parameter is half if that of the input is not wanted. SPDX-License-Identifier: Apache-2.0 */
#define NAME "alone_differs"
#define AFTER_BACKWARD                                      \
  if (call->outputs[0] == NULL && call->outputs[1] != NULL) \
    for (int64_t c = 0; c < of.width; ++c) put(call->outputs[1], c, get(call->outputs[1], c) / 2);
#include "layer.h"
