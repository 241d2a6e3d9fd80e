/* Fails in backward. SPDX-License-Identifier: Apache-2.0 */
#define NAME "fails"
#define AFTER_BACKWARD return tn_fail(execution->errors, TN_INTERNAL, NULL, "backward does not work");
#include "layer.h"
