/* Backward reads the output, for which query has not asked. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reads_unasked"
#define INPUT_GRADIENT(dy, w) ((dy) * (w) + 0 * get(call->inputs[2], i))
#include "layer.h"
