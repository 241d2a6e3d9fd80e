/* The rate depends on how often record was called. SPDX-License-Identifier: Apache-2.0 */
#define NAME "updater_history"
static int records;
#define RECORD code[6].number = 0.1 + 0.001 * ++records;
#include "updater.h"
