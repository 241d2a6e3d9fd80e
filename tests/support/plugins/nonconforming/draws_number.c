/* Two layers draw the same numbers. SPDX-License-Identifier: Apache-2.0 */
#define NAME "draws_number"
#define NUMBER 0
#include "draws.h"
