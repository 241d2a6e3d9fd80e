/* Keeps all rules, with draws. SPDX-License-Identifier: Apache-2.0 */
#define NAME "draws_conforming"
#include "draws.h"
