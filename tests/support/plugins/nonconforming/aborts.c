/* Aborts in run. SPDX-License-Identifier: Apache-2.0 */
#define NAME "aborts"
#define AFTER_FORWARD abort();
#include "layer.h"
