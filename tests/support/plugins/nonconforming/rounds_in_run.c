/* run lets floats be rounded upwards from then on. SPDX-License-Identifier: Apache-2.0 */
#define NAME "rounds_in_run"
#include <xmmintrin.h>
#define BEFORE_FORWARD _mm_setcsr(_mm_getcsr() | 0x4000);
#include "layer.h"
