/* Offers the layer type of the plugin "good", under another id. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_type")
TEST_NOTE(TEST_JSON_OF(TEST_ABI, "bad_type", "good", "", "[]"))
TEST_PLAN
TEST_LAYER("good", plan)
TEST_PLUGIN(TN_ABI_MAJOR, TN_ABI_MINOR, "bad_type", "")
TEST_ENTRY
