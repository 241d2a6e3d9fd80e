/* Doubles the gradient of what lies behind its first block. SPDX-License-Identifier: Apache-2.0 */
#define NAME "block_gradient"
#define INPUT_GRADIENT(dy, w) ((dy) * (w) * (c >= 4096 ? 2 : 1))
#include "layer.h"
