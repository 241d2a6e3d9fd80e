/* Built for another major version of the interface. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_major")
TEST_NOTE(TEST_JSON("{\"major\":9,\"built\":4,\"required\":2}", "bad_major", "", "[]"))
TEST_PLAN
TEST_LAYER("bad_major", plan)
TEST_PLUGIN(9, 2, "bad_major", "")
TEST_ENTRY
