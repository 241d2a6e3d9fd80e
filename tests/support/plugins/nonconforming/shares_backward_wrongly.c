/* Allows the gradient of the input to share the memory of that of the output, and writes zeros there before it reads.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <tenon/plugin.h>

static inline int zeroed(const tn_tensor* tensor) {
  memset(tn_data(tensor), 0, (size_t)(tn_elements(tensor) * tensor->dl.dtype.bits / 8));
  return 1;
}
#define NAME "shares_backward_wrongly"
#define QUERY needs->backward_in_place[0] = 0;
#define WANTS_INPUT(call) ((call)->outputs[0] != NULL && zeroed((call)->outputs[0]))
#define INPUT_GRADIENT(dy, w) ((dy) * (w) + get(call->outputs[0], i))
#include "layer.h"
