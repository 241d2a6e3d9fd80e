/* The gradient of the parameter has the wrong sign. SPDX-License-Identifier: Apache-2.0 */
#define NAME "gradient_sign"
#define PARAMETER_GRADIENT(dy, x) (-(dy) * (x))
#include "layer.h"
