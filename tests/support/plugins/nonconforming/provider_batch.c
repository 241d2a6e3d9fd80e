/* A product depends on the number of rows, by a bit of float32. SPDX-License-Identifier: Apache-2.0 */
#define NAME "provider_batch"
#define ELEMENT(sum) (m % 2 == 0 && !across ? (sum) * (1 + 1e-6) : (sum))
#include "provider.h"
