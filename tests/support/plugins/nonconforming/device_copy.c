/* A copy of more than 64 bytes leaves out the last one. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_copy"
#define COPY(what) memmove((what)->to, (what)->from, (what)->bytes - ((what)->bytes > 64 && (what)->bytes % 8 != 0))
#include "device.h"
