/* A fused kernel gives a thousandth more than the bodies. SPDX-License-Identifier: Apache-2.0 */
#define NAME "fused_value"
#define VALUE(z) ((z)*1.001)
#include "fused.h"
