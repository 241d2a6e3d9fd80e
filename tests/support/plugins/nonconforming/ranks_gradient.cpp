// The gradient is 1/1000 too large, as much as a change of rank changes it. SPDX-License-Identifier: Apache-2.0
#define NAME "ranks_gradient"
#define SLOPE 1.001
#include "ranks.h"
