/* Another name of the state at each second call: a saved state does not fit. SPDX-License-Identifier: Apache-2.0 */
#define NAME "updater_state_name"
static int records;
#define RECORD state.name = ++records % 2 == 0 ? "m" : "n";
#include "updater.h"
