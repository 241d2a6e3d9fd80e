/* A valid note, but no exported symbol. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

TEST_MARKER("bad_symbol")
TEST_NOTE(TEST_JSON(TEST_ABI, "bad_symbol", "", "[]"))
