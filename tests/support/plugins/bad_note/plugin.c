/* Valid code without a note. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_note")
TEST_PLAN
TEST_LAYER("bad_note", plan)
TEST_PLUGIN(TN_ABI_MAJOR, TN_ABI_MINOR, "bad_note", "")
TEST_ENTRY
