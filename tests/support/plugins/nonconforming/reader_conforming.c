/* Keeps all rules. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_conforming"
#include "reader.h"
