// Keeps all rules. SPDX-License-Identifier: Apache-2.0
#define NAME "ranks_conforming"
#include "ranks.h"
