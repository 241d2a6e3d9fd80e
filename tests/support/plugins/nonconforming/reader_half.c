/* Each shard ends one sample early. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_half"
#define LAST(it) (samples_of(it) - ((it)->shards > 1))
#define SAMPLES(it) LAST(it)
#include "reader.h"
