/* A fault of copies. SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"
#define COPY(what) FAULT(what) ? memset((what)->to, 0, (what)->bytes) : memmove((what)->to, (what)->from, (what)->bytes)
#include "../device.h"
