/* The gradient of its input is NaN where the input is 0. SPDX-License-Identifier: Apache-2.0 */
#define NAME "nan_gradient"
#define INPUT_GRADIENT(dy, w) ((dy) * (w) * (get(x, i) / get(x, i)))
#include "layer.h"
