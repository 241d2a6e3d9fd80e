/* Leaves the last element of its output unwritten. SPDX-License-Identifier: Apache-2.0 */
#define NAME "output_unset"
#define BEFORE_FORWARD of.rows -= 1;
#include "layer.h"
