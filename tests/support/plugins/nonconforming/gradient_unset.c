/* Leaves the gradient of the input unwritten. SPDX-License-Identifier: Apache-2.0 */
#define NAME "gradient_unset"
#define WANTS_INPUT(call) 0
#include "layer.h"
