/* Writes one element before its output. SPDX-License-Identifier: Apache-2.0 */
#define NAME "writes_before"
#define AFTER_FORWARD put(y, -1, 0);
#include "layer.h"
