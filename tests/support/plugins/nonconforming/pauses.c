/* prepare waits for a signal. SPDX-License-Identifier: Apache-2.0 */
#define NAME "pauses"
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>
#define PREPARE pause();
#include "layer.h"
