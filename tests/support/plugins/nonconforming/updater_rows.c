/* Row-sparse gradients update with another rate than dense ones: each second updater has another rate. A program alone
 * cannot tell them from each other, since the host refuses indices and draws in it.
 * SPDX-License-Identifier: Apache-2.0 */
#define NAME "updater_rows"
static int records;
#define RECORD code[6].number = ++records % 2 == 0 ? 0.2 : 0.1;
#include "updater.h"
