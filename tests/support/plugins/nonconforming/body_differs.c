/* The kernel computes another function than the recorded body. SPDX-License-Identifier: Apache-2.0 */
#define NAME "body_differs"
#define BODY
#define FORWARD(x, w) ((x) * (w)*1.01)
#define INPUT_GRADIENT(dy, w) ((dy) * (w)*1.01)
#define PARAMETER_GRADIENT(dy, x) ((dy) * (x)*1.01)
#include "layer.h"
