// Has another gradient for a large integer. SPDX-License-Identifier: Apache-2.0
#define NAME "attribute_bound"
#define SLOPE (attributes.integer("order") >= 50 ? 2.0 : 1.0)
#include "formula.h"
