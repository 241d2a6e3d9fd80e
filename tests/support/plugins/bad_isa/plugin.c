/* Needs a CPU feature that no CPU has. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_isa")
TEST_NOTE(TEST_JSON(TEST_ABI, "bad_isa", "sse3,telepathy", "[]"))
TEST_PLAN
TEST_LAYER("bad_isa", plan)
TEST_PLUGIN(TN_ABI_MAJOR, TN_ABI_MINOR, "bad_isa", "sse3,telepathy")
TEST_ENTRY
