/* A short file is read as if it had zeros at its end. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_damage"
#define DAMAGED(read, count) ((read) > (count))
#include "reader.h"
