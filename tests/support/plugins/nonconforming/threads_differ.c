/* The result depends on the number of threads. SPDX-License-Identifier: Apache-2.0 */
#define NAME "threads_differ"
#define FORWARD(x, w) ((x) * (w) * (execution->parallel->workers > 1 ? 1.0001 : 1))
#include "layer.h"
