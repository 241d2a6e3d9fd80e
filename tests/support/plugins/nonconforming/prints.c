/* Prints in run. SPDX-License-Identifier: Apache-2.0 */
#define NAME "prints"
#include <stdio.h>
#define AFTER_FORWARD fputs("", stderr);
#include "layer.h"
