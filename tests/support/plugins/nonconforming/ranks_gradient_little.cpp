// The gradient is 1/50000 too large, less than a change of rank changes it. SPDX-License-Identifier: Apache-2.0
#define NAME "ranks_gradient_little"
#define SLOPE 1.00002
#include "ranks.h"
