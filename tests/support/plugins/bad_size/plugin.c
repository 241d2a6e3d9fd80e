/* The table of the layer type ends before plan. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_size")
TEST_NOTE(TEST_JSON(TEST_ABI, "bad_size", "", "[]"))
TEST_PLAN
TEST_LAYER_OF("bad_size", plan, offsetof(tn_layer_type, plan), 3)
TEST_PLUGIN(TN_ABI_MAJOR, TN_ABI_MINOR, "bad_size", "")
TEST_ENTRY
