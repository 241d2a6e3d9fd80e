/* Keeps all rules. SPDX-License-Identifier: Apache-2.0 */
#define NAME "updater_conforming"
#include "updater.h"
