/* Allows the output to share the memory of the input, of which it reads elements that it has overwritten.
 * SPDX-License-Identifier: Apache-2.0 */
#define NAME "shares_wrongly"
#define QUERY             \
  needs->in_place[0] = 0; \
  needs->reads_in[0] = 0;
#define FORWARD(x, w) ((x) * (w) + (i > 0 ? get(call->inputs[0], i - 1) : 0))
#define PARAMETER_GRADIENT(dy, x) (dy)
#include "layer.h"
