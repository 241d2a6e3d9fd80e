/* The second instance has other numbers. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_opens"
static int instances;
#define OPENED(it) it->passes = instances++ % 2;
#define VALUE(it, i) ((it)->values[i] + (int32_t)((it)->passes > 0 && (it)->values[i] < 90))
#include "reader.h"
