/* Adds the element behind the gradient of its output. SPDX-License-Identifier: Apache-2.0 */
#define NAME "gradient_reads_behind"
#define INPUT_GRADIENT(d, w) ((d) * (w) + (i == 0 ? get(dy, of.rows * of.width) : 0))
#include "layer.h"
