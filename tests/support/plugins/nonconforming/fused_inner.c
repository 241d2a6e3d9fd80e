/* A fused kernel does not write the output inside its chain. SPDX-License-Identifier: Apache-2.0 */
#define NAME "fused_inner"
#define WRITES_INNER 0
#include "fused.h"
