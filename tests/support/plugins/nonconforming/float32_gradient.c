/* The gradient of its input is another one in fp32. SPDX-License-Identifier: Apache-2.0 */
#define NAME "float32_gradient"
#define INPUT_GRADIENT(dy, w) ((dy) * (w) * (of.wide ? 1 : 1.001))
#include "layer.h"
