/* prepare sets an environment variable. SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#define NAME "changes_environment"
#include <stdlib.h>
#define PREPARE setenv("BAD_PLUGIN", "1", 1);
#include "layer.h"
