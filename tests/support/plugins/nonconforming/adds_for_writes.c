/* Adds to the gradient of the input, whose memory has no values yet. SPDX-License-Identifier: Apache-2.0 */
#define NAME "adds_for_writes"
#define INPUT_GRADIENT(dy, w) (get(call->outputs[0], i) + (dy) * (w))
#include "layer.h"
