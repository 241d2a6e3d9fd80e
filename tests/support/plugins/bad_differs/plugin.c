/* The default of an attribute differs between code and note. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_differs")
TEST_NOTE(TEST_JSON(TEST_ABI, "bad_differs", "", "[]"))
TEST_PLAN
TEST_LAYER_OF("bad_differs", plan, sizeof(tn_layer_type), 4)
TEST_PLUGIN(TN_ABI_MAJOR, TN_ABI_MINOR, "bad_differs", "")
TEST_ENTRY
