/* Changes no parameter. SPDX-License-Identifier: Apache-2.0 */
#define NAME "updater_still"
#define RECORD code[6].number = 0;
#include "updater.h"
