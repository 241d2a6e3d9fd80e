/* Needs a library that is absent when the plugin is loaded. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

int tenon_test_absent(void); /* of the library */

TEST_MARKER("bad_library")
TEST_NOTE(TEST_JSON(TEST_ABI, "bad_library", "",
                    "[{\"name\":\"libtenon_test_absent.so\",\"hint\":\"install the absent package\"}]"))
static tn_status plan(const tn_planner* planner) { return planner->size == 0 ? tenon_test_absent() : TN_OK; }
TEST_LAYER("bad_library", plan)
TEST_PLUGIN(TN_ABI_MAJOR, TN_ABI_MINOR, "bad_library", "")
TEST_ENTRY
