/* The second pass ends earlier. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_shorter"
#define SAMPLES(it) ((void)(it), -1)
#define LAST(it) (samples_of(it) - ((it)->passes > 0))
#include "reader.h"
