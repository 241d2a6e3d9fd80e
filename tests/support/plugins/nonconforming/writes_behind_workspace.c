/* Writes behind its workspace. SPDX-License-Identifier: Apache-2.0 */
#define NAME "writes_behind_workspace"
#define WORKSPACE 64
#define AFTER_FORWARD ((char*)call->workspace)[64] = 1;
#include "layer.h"
