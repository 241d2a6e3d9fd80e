// The limit on the size of files that a process writes, beyond which the system ends it or refuses the write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string>

#include "core/error.h"

namespace tenon::core {

// Returns why this process may not write a file of so many bytes, on a disk or in memory; "" if it may. Asked before
// the write, since the default of SIGXFSZ ends the process.
inline std::string file_limit_fault(uint64_t bytes) {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return "";
  return text("File too large: it needs ", bytes, " bytes, and this process may write files of at most ",
              limit.rlim_cur, " (RLIMIT_FSIZE); raise that limit, with ulimit -f in a shell");
}

}  // namespace tenon::core
