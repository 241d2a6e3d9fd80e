/* The library that the plugin brings has beside it. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("brought")
__attribute__((visibility("default"))) int tenon_test_brought(void);
int tenon_test_brought(void) { return 0; }
