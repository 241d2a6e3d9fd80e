/* The descriptor ends before its versions. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_short")
TEST_NOTE(TEST_JSON(TEST_ABI, "bad_short", "", "[]"))

static const tn_plugin plugin = {.size = 8};
const tn_plugin* tenon_plugin(void) { return &plugin; }
