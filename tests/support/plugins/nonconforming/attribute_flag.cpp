// Has another gradient for one value of a flag. SPDX-License-Identifier: Apache-2.0
#define NAME "attribute_flag"
#define SLOPE (attributes.flag("strict") ? 2.0 : 1.0)
#include "formula.h"
