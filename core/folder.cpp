// SPDX-License-Identifier: Apache-2.0
#include "core/folder.h"

#include <dirent.h>

#include <cerrno>
#include <memory>

namespace tenon::core {

std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& error) {
  std::vector<std::string> names;
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> open(::opendir(folder.c_str()), close);
  if (open) errno = 0;
  while (const dirent* const entry = open ? ::readdir(open.get()) : nullptr) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
    errno = 0;  // readdir returns null at the end, with errno unchanged, and on failure
  }
  error = std::error_code(errno, std::generic_category());
  return names;
}

}  // namespace tenon::core
