/* Leaves what lies behind its first block unwritten. SPDX-License-Identifier: Apache-2.0 */
#define NAME "block_unset"
#define FORWARD(x, w) (i < 4096 ? (x) * (w) : get(y, i))
#include "layer.h"
