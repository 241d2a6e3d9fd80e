/* Each product reads the element behind its first operand. SPDX-License-Identifier: Apache-2.0 */
#define NAME "provider_reads_behind"
#define ELEMENT(sum) ((sum) + 0 * get(a, batch * m * k))
#include "provider.h"
