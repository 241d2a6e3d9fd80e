// The entry throws, which the C interface forbids. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.h>

#include <stdexcept>

#include "../parts.h"

TEST_MARKER("bad_throw")
TEST_NOTE(TEST_JSON(TEST_ABI, "bad_throw", "", "[]"))

const tn_plugin* tenon_plugin(void) { throw std::runtime_error("from the entry"); }
