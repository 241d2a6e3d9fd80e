// A plugin that has the communicator "loop". SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include "tests/support/loop_comm.h"

namespace tenon_tests {

// The table of a plugin with the type of a world; both must outlive the host that gets it.
class LoopPlugin {
 public:
  explicit LoopPlugin(const LoopWorld& world) : comms_{world.type()} {
    table_.size = sizeof table_;
    table_.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, 4, 0};
    table_.id = "tenon.test_loop";
    table_.version = "1.0.0";
    table_.doc = "ranks that are threads";
    table_.license = "Apache-2.0";
    table_.isa = "";
    table_.comms_count = 1;
    table_.comms = comms_;
  }
  LoopPlugin(const LoopPlugin&) = delete;
  LoopPlugin& operator=(const LoopPlugin&) = delete;
  [[nodiscard]] const tn_plugin* get() const { return &table_; }

 private:
  const tn_comm_type* comms_[1];
  tn_plugin table_ = {};
};

}  // namespace tenon_tests
