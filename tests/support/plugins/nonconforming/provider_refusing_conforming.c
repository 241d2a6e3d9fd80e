/* No product is taken, as by a provider of large ones. SPDX-License-Identifier: Apache-2.0 */
#define NAME "provider_refusing_conforming"
#define PREPARE return tn_fail(errors, TN_UNSUPPORTED, NULL, "no such product here");
#include "provider.h"
