/* prepare writes to standard output. SPDX-License-Identifier: Apache-2.0 */
#define NAME "writes_stdout"
#include <stdio.h>
#define PREPARE puts("{\"made\": true}");
#include "layer.h"
