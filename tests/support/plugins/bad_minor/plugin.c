/* Needs a later minor version of the interface. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_minor")
TEST_NOTE(TEST_JSON("{\"major\":0,\"built\":99,\"required\":98}", "bad_minor", "", "[]"))
TEST_PLAN
TEST_LAYER("bad_minor", plan)
TEST_PLUGIN(TN_ABI_MAJOR, 98, "bad_minor", "")
TEST_ENTRY
