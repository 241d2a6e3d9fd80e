/* The code needs a later minor version than the note states. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_hidden_minor")
TEST_NOTE(TEST_JSON(TEST_ABI, "bad_hidden_minor", "", "[]"))
TEST_PLAN
TEST_LAYER("bad_hidden_minor", plan)
TEST_PLUGIN(TN_ABI_MAJOR, 98, "bad_hidden_minor", "")
TEST_ENTRY
