// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <dlfcn.h>
#include <fcntl.h>

#include <algorithm>
#include <system_error>

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

std::vector<std::filesystem::path> folders_beside(const void* symbol, const std::filesystem::path& inner) {
  Dl_info info = {};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return {};
  namespace fs = std::filesystem;
  std::error_code error, unknown;
  const fs::path name = fs::absolute(info.dli_fname), file = fs::canonical(name, error);
  std::vector<fs::path> result = {name.parent_path() / inner};
  if (const fs::path other = file.parent_path() / inner;
      !error && fs::is_directory(other, unknown) && !fs::equivalent(result.front(), other, unknown))
    result.push_back(other);
  return result;
}

}  // namespace tenon::base
