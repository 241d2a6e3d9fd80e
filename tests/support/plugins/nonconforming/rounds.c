/* plan lets floats be rounded upwards from then on. SPDX-License-Identifier: Apache-2.0 */
#define NAME "rounds"
#include <xmmintrin.h>
#define PLAN _mm_setcsr(_mm_getcsr() | 0x4000);
#include "layer.h"
