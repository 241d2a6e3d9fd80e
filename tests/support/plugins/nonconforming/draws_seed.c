/* The draws do not depend on the seed. SPDX-License-Identifier: Apache-2.0 */
#define NAME "draws_seed"
#define SEED 1
#include "draws.h"
