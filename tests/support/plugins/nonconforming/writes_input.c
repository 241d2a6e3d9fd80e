/* Writes to its input the byte that is there, which another thread might read. SPDX-License-Identifier: Apache-2.0 */
#define NAME "writes_input"
#define AFTER_FORWARD *(volatile char*)tn_data(x) = *(const volatile char*)tn_data(x);
#include "layer.h"
