/* Backward writes to the gradient of its output the byte that is there. SPDX-License-Identifier: Apache-2.0 */
#define NAME "writes_gradient"
#define AFTER_BACKWARD *(volatile char*)tn_data(dy) = *(const volatile char*)tn_data(dy);
#include "layer.h"
