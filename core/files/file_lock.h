// A lock among processes, and among objects of one process. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "core/files/folder_files.h"

namespace tenon::core {

// Takes the lock of FolderFiles::lock: flock on the file, which holds the number of the process. A descriptor that a
// forked child inherits keeps such a lock alive; so a file whose process has ended is replaced by a new one.
[[nodiscard]] std::unique_ptr<FolderFiles::Lock> lock_file(const std::filesystem::path& path);

}  // namespace tenon::core
