// SPDX-License-Identifier: Apache-2.0
#include "core/files/path_walk.h"

#include <cerrno>
#include <deque>

namespace tenon::core {

namespace fs = std::filesystem;

fs::path walk_path(const fs::path& path, const std::function<void(const PathStep&)>& visit, std::error_code& error) {
  constexpr int kMostLinks = 40;  // as Linux
  std::deque<fs::path> left(path.begin(), path.end());
  fs::path found;  // the part of the path that is resolved: no link is in it
  error.clear();
  for (int links = 0; !left.empty();) {
    const fs::path name = left.front(), entry = found / name;
    const fs::path folder = name.has_root_directory() ? name : found.empty() ? fs::path(".") : found;
    left.pop_front();
    struct stat status = {}, around = {};
    if (::lstat(entry.c_str(), &status) != 0 || ::stat(folder.c_str(), &around) != 0) {
      error = {errno, std::generic_category()};
      return found;
    }
    const PathStep step{folder, entry, around, status, left.empty()};
    visit(step);
    if (!step.is_link()) {
      found = entry;
      continue;
    }
    const fs::path target = fs::read_symlink(entry, error);
    if (++links > kMostLinks) error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    if (error) return found;
    left.insert(left.begin(), target.begin(), target.end());
    if (target.is_absolute()) found.clear();
  }
  return found;
}

}  // namespace tenon::core
