/* Doubles the gradient of the elements behind the last whole vector of four. SPDX-License-Identifier: Apache-2.0 */
#define NAME "tail_gradient"
#define INPUT_GRADIENT(dy, w) ((dy) * (w) * (c >= of.width / 4 * 4 ? 2 : 1))
#include "layer.h"
