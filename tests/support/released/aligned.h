/* A plugin of interface 0.2 that needs aligned operands. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TESTS_RELEASED_ALIGNED_H
#define TENON_TESTS_RELEASED_ALIGNED_H

#include <tenon/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

const tn_plugin* aligned_plugin(void);
/* How often its products, and its kernel, have run. */
int64_t aligned_products(void);
int64_t aligned_doubled(void);

#ifdef __cplusplus
}
#endif
#endif
