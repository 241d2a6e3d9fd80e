/* The third instance has other numbers. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_hosts"
static int instances;
#define OPENED(it) it->passes = instances++ < 2 ? 0 : 1;
#define VALUE(it, i) ((it)->values[i] + (int32_t)((it)->passes > 0 && (it)->values[i] < 90))
#include "reader.h"
