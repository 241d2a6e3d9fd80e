/* The gradient of the input is 1.001 times what it should be. SPDX-License-Identifier: Apache-2.0 */
#define NAME "gradient_scaled"
#define INPUT_GRADIENT(dy, w) ((dy) * (w)*1.001)
#include "layer.h"
