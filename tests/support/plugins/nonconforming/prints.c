/* Prints in run. SPDX-License-Identifier: Apache-2.0 */
#define NAME "prints"
#include <stdio.h>
static const char* volatile text = "";
#define AFTER_FORWARD fputs(text, stderr);
#include "layer.h"
