/* Lower calls a function that the oldest host which the plugin requires does not have.
 * SPDX-License-Identifier: Apache-2.0 */
#define NAME "requires_too_little"
#define WITHOUT_KERNEL
#define REQUIRED 2
#define BODY builder->prefix_sum(builder->self, builder->input(builder->self, 0, 0), 0);
#include "layer.h"
