/* Changes its input. SPDX-License-Identifier: Apache-2.0 */
#define NAME "changes_input"
#define AFTER_FORWARD put(x, 0, 1);
#include "layer.h"
