/* Reads at address 0 in run. SPDX-License-Identifier: Apache-2.0 */
#define NAME "crashes"
#define AFTER_FORWARD *(volatile int*)NULL = 1;
#include "layer.h"
