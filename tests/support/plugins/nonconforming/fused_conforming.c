/* Keeps all rules, with a fusion pattern. SPDX-License-Identifier: Apache-2.0 */
#define NAME "fused_conforming"
#include "fused.h"
