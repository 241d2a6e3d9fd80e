/* The draws do not depend on the update. SPDX-License-Identifier: Apache-2.0 */
#define NAME "draws_step"
#define STEP 1
#include "draws.h"
