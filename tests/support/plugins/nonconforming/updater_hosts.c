/* The third updater has another rate. SPDX-License-Identifier: Apache-2.0 */
#define NAME "updater_hosts"
static int records;
#define RECORD code[6].number = ++records < 4 ? 0.1 : 0.2;
#include "updater.h"
