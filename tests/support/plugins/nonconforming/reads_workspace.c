/* Adds a number of its workspace that it has not written. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reads_workspace"
#define WORKSPACE 64
#define FORWARD(x, w) ((x) * (w) + ((const double*)call->workspace)[i % 8])
#include "layer.h"
