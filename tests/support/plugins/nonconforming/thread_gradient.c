/* The gradient of the parameter depends on the number of threads. SPDX-License-Identifier: Apache-2.0 */
#define NAME "thread_gradient"
#define PARAMETER_GRADIENT(dy, x) ((dy) * (x) * (1 + 1e-6 * execution->parallel->workers))
#include "layer.h"
