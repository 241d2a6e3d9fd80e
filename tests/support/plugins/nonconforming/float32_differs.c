/* Computes something else in fp32. SPDX-License-Identifier: Apache-2.0 */
#define NAME "float32_differs"
#define FORWARD(x, w) ((x) * (w) * (of.wide ? 1 : 1.001))
#define INPUT_GRADIENT(dy, w) ((dy) * (w) * (of.wide ? 1 : 1.001))
#include "layer.h"
