/* A product depends on the number of threads. SPDX-License-Identifier: Apache-2.0 */
#define NAME "provider_threads"
#define ELEMENT(sum) (execution->parallel->workers > 1 ? (sum) * (1 + 1e-6) : (sum))
#include "provider.h"
