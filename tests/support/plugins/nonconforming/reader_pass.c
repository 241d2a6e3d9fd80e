/* The second pass has other numbers. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_pass"
#define VALUE(it, i) ((it)->values[i] + (int32_t)((it)->passes > 0 && (it)->values[i] < 90))
#include "reader.h"
