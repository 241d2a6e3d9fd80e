/* prepare sets the alarm of the process. SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#define NAME "sets_alarm"
#include <unistd.h>
#define PREPARE alarm(1000);
#include "layer.h"
