/* The sizes of the structs that a host of the version TN_TARGET_MINOR lends. Compiled once for each older version,
 * since the headers state where the structs of a version end. SPDX-License-Identifier: Apache-2.0 */
#include <tenon/draft/comm.h>
#include <tenon/draft/numbers.h>
#include <tenon/plugin.h>

extern const uint32_t TENON_SIZES[];
const uint32_t TENON_SIZES[] = {
#define TENON_LENT(name) sizeof(name),
#include "check/watch/lent_structs.h"
#undef TENON_LENT
};
