/* A fused kernel leaves out the gradient of the output inside its chain. SPDX-License-Identifier: Apache-2.0 */
#define NAME "fused_gradient"
#define INNER_GRADIENT(dy) ((dy)*0)
#include "fused.h"
