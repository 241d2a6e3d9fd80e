/* Writes behind a workspace that does not end at a page. SPDX-License-Identifier: Apache-2.0 */
#define NAME "writes_beside_workspace"
#define WORKSPACE 60
#define AFTER_FORWARD ((char*)call->workspace)[60] = 1;
#include "layer.h"
