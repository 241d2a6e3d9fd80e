/* A fill of an odd number of bytes leaves out the last one. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_fill"
#define FILL(memory, value, bytes) memset(memory, value, (bytes) - (bytes) % 2)
#include "device.h"
