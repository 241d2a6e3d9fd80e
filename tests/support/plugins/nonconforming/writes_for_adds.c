/* Writes the gradient of a parameter where it should add. SPDX-License-Identifier: Apache-2.0 */
#define NAME "writes_for_adds"
#define ADDS(request) ((request) < 0)
#include "layer.h"
