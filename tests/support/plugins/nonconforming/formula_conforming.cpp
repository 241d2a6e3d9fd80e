// Keeps all rules. SPDX-License-Identifier: Apache-2.0
#define NAME "formula_conforming"
#include "formula.h"
