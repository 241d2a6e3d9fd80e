/* Sound code without a note. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_note")
TEST_PLAN
TEST_LAYER("bad_note", plan)
TEST_PLUGIN(0, 1, "bad_note", "")
TEST_ENTRY
