/* Allocates memory in run. SPDX-License-Identifier: Apache-2.0 */
#define NAME "allocates"
#define AFTER_FORWARD free(malloc((size_t)of.width));
#include "layer.h"
