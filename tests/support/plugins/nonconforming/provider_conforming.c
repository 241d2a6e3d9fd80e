/* Keeps all rules. SPDX-License-Identifier: Apache-2.0 */
#define NAME "provider_conforming"
#include "provider.h"
