// Can throw, but is linked with an unwinder of its own. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.h>

#include <stdexcept>

#include "../parts.h"

TEST_MARKER("bad_unwinder")
TEST_NOTE(TEST_JSON_OF(TEST_ABI, "bad_unwinder", "unwind", "", "[]"))

const tn_plugin* tenon_plugin(void) {
  try {
    throw std::runtime_error("caught here");
  } catch (const std::exception&) {
    return nullptr;
  }
}
