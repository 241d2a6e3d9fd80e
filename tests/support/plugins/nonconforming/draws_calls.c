/* Draws depend on the number of calls before. SPDX-License-Identifier: Apache-2.0 */
#define NAME "draws_calls"
static int calls;
#define BEFORE_FORWARD ++calls;
#define NUMBER (call->draw + (uint32_t)calls)
#include "draws.h"
