/* The entry returns null. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_null")
TEST_NOTE(TEST_JSON(TEST_ABI, "bad_null", "", "[]"))

const tn_plugin* tenon_plugin(void) { return NULL; }
