/* The gradient of its input is infinite. SPDX-License-Identifier: Apache-2.0 */
#define NAME "infinite_gradient"
#define INPUT_GRADIENT(dy, w) ((dy) * (w) / 0.0)
#include "layer.h"
