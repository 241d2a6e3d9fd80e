// Its description throws; the wrapper keeps the reason. SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <tenon/plugin.hpp>

#include "../parts.h"

TEST_MARKER("thrower")
TEST_NOTE(TEST_JSON(TEST_ABI, "thrower", "", "[]"))

namespace {

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.test.thrower", "1.0.0", "describe throws", "Apache-2.0");
  throw std::runtime_error("no cards today");
}

}  // namespace

const tn_plugin* tenon_plugin(void) { return tn::entry<describe>(); }
