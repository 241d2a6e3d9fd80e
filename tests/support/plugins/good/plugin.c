/* A valid plugin; each bad one differs from it in one point. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("good")
TEST_NOTE(TEST_JSON(TEST_ABI, "good", "", "[]"))
TEST_PLAN
TEST_LAYER("good", plan)
TEST_PLUGIN(TN_ABI_MAJOR, TN_ABI_MINOR, "good", "")
TEST_ENTRY
