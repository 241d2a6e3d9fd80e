/* Its properties have no name. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_nameless"
#define PROPERTIES(result) (result)->name[0] = 0;
#include "device.h"
