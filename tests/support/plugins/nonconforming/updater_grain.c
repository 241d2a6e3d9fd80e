/* The grain is one that the oldest host which the plugin requires does not know. SPDX-License-Identifier: Apache-2.0 */
#define NAME "updater_grain"
#define REQUIRED 2
#define GRAIN TN_GRAIN_MATRIX
#include "updater.h"
