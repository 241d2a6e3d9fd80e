/* Sleeps in run. SPDX-License-Identifier: Apache-2.0 */
#define NAME "sleeps"
#define _GNU_SOURCE
#include <unistd.h>
#define AFTER_FORWARD usleep(1);
#include "layer.h"
