// Errors of system calls. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/error.h"

namespace tenon::core {

[[noreturn]] inline void fail_system(const std::filesystem::path& path, const char* what, int error) {
  const bool absent = error == ENOENT || error == ENOTDIR;
  const tn_status code = absent ? TN_NOT_FOUND : error == ENOMEM ? TN_OUT_OF_MEMORY : TN_IO;
  fail(code, SubjectName{path.string()}, path.string(), ": cannot ", what, ": ",
       std::generic_category().message(error));
}

}  // namespace tenon::core
