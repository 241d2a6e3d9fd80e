/* The table is one for which no provider is asked. SPDX-License-Identifier: Apache-2.0 */
#define NAME "provider_unasked"
#define ID "tenon.gem/1"
#include "provider.h"
