/* Ends the process by _exit with the code of success. SPDX-License-Identifier: Apache-2.0 */
#define NAME "quits"
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>
#define BEFORE_FORWARD _exit(0);
#include "layer.h"
