/* Divides by the number of samples. SPDX-License-Identifier: Apache-2.0 */
#define NAME "batch_differs"
#define FORWARD(x, w) ((x) * (w) / (double)of.rows)
#define INPUT_GRADIENT(dy, w) ((dy) * (w) / (double)of.rows)
#define PARAMETER_GRADIENT(dy, x) ((dy) * (x) / (double)of.rows)
#include "layer.h"
