/* Depends on the minibatch before. SPDX-License-Identifier: Apache-2.0 */
#define NAME "remembers"
static double last;
#define FORWARD(x, w) ((x) * (w) + 1e-3 * last)
#define AFTER_FORWARD \
  if (of.rows > 0) last = get(y, of.rows * of.width - 1);
#include "layer.h"
