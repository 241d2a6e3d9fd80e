/* The gradient of its parameter is another one in fp32. SPDX-License-Identifier: Apache-2.0 */
#define NAME "float32_parameter"
#define PARAMETER_GRADIENT(dy, x) ((dy) * (x) * (of.wide ? 1 : 1.001))
#include "layer.h"
