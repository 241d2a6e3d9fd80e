/* Exports a second symbol. SPDX-License-Identifier: Apache-2.0 */
#define NAME "two_symbols"
__attribute__((visibility("default"))) int bad_second_symbol(void);
int bad_second_symbol(void) { return 1; }
#include "layer.h"
