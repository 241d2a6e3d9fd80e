/* A fused kernel reads the element behind its first input. SPDX-License-Identifier: Apache-2.0 */
#define NAME "fused_reads_behind"
#define VALUE(z) ((z) + 0 * fused_get(x, tn_elements(x)))
#include "fused.h"
