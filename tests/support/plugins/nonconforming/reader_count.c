/* Gives one sample less than it says. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_count"
#define SAMPLES(it) (samples_of(it) + 1)
#include "reader.h"
