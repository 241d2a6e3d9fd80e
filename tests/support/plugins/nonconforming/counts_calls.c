/* Depends on the number of calls before. SPDX-License-Identifier: Apache-2.0 */
#define NAME "counts_calls"
static int calls;
#define BEFORE_FORWARD ++calls;
#define FORWARD(x, w) ((x) * (w) + 1e-4 * calls)
#include "layer.h"
