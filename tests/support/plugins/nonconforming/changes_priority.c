/* prepare changes the priority of the process. SPDX-License-Identifier: Apache-2.0 */
#define NAME "changes_priority"
#include <sys/resource.h>
#define PREPARE setpriority(PRIO_PROCESS, 0, 7);
#include "layer.h"
