/* Has no samples. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_empty"
#define OPENED(it) it->count = 0;
#include "reader.h"
