/* Ends the process in run. SPDX-License-Identifier: Apache-2.0 */
#define NAME "exits"
#define AFTER_FORWARD exit(3);
#include "layer.h"
