/* prepare closes standard input. SPDX-License-Identifier: Apache-2.0 */
#define NAME "closes_stdin"
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>
#define PREPARE close(0);
#include "layer.h"
