/* Writes one element behind its output. SPDX-License-Identifier: Apache-2.0 */
#define NAME "writes_behind"
#define AFTER_FORWARD put(y, of.rows* of.width, 0);
#include "layer.h"
