/* The layer type has no plan. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_plan")
TEST_NOTE(TEST_JSON(TEST_ABI, "bad_plan", "", "[]"))
TEST_LAYER("bad_plan", NULL)
TEST_PLUGIN(TN_ABI_MAJOR, TN_ABI_MINOR, "bad_plan", "")
TEST_ENTRY
