/* Adds the element behind the last one of its input. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reads_behind"
#define FORWARD(x, w) ((x) * (w) + (i == 0 ? get(call->inputs[0], of.rows * of.width) : 0))
#include "layer.h"
