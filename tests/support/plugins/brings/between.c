/* A library that needs another one. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

int tenon_test_brought(void); /* of the other library */

TEST_MARKER("between")
__attribute__((visibility("default"))) int tenon_test_between(void);
int tenon_test_between(void) { return tenon_test_brought(); }
