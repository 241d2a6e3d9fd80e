/* The gradient of the parameter leaves out the last row. SPDX-License-Identifier: Apache-2.0 */
#define NAME "gradient_rows"
#define AFTER_BACKWARD                         \
  if (call->outputs[1] != NULL && of.rows > 1) \
    for (int64_t c = 0; c < of.width; ++c)     \
      put(call->outputs[1], c,                 \
          get(call->outputs[1], c) - get(dy, (of.rows - 1) * of.width + c) * get(x, (of.rows - 1) * of.width + c));
#include "layer.h"
