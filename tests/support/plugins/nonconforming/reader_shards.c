/* Shards overlap. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_shards"
#define INDEX(it, i) ((i) * (it)->shards)
#include "reader.h"
