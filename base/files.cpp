// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <fcntl.h>

#include <algorithm>

namespace tenon::base {

bool write_all(int to, std::string_view bytes) noexcept {
  constexpr size_t kMostAtOnce = size_t{1} << 30;  // in one system call
  while (!bytes.empty()) {
    const ssize_t put = uninterrupted([&] { return ::write(to, bytes.data(), std::min(bytes.size(), kMostAtOnce)); });
    if (put < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

bool sync_folder(const std::filesystem::path& folder) noexcept {
  const Descriptor open(uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_CLOEXEC); }));
  return open.get() >= 0 && (uninterrupted([&] { return ::fsync(open.get()); }) == 0 || errno == EINVAL);
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

}  // namespace tenon::base
