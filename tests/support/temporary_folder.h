// A folder that no other process uses, so that any number of test programs run at the same time, and a thread
// that folders can be shut to. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/temporary.h"

namespace tenon_tests {

using tenon::base::TemporaryFolder;

// Takes root's right to read and write everywhere away from this thread, and from those that it starts, while it lives.
// The user stays, so that a temporary folder which is shut to others stays open.
class Unprivileged {
 public:
  Unprivileged() {
    if (syscall(SYS_capget, &header_, before_) != 0) throw std::runtime_error("cannot read the rights of the thread");
    Rights without = {before_[0], before_[1]};
    for (const unsigned each : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH})
      without[CAP_TO_INDEX(each)].effective &= ~CAP_TO_MASK(each);
    if (syscall(SYS_capset, &header_, without) != 0) throw std::runtime_error("cannot give up the rights of root");
  }
  ~Unprivileged() {
    if (syscall(SYS_capset, &header_, before_) != 0) std::abort();
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  using Rights = __user_cap_data_struct[_LINUX_CAPABILITY_U32S_3];
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  Rights before_ = {};
};

}  // namespace tenon_tests
