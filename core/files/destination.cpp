// SPDX-License-Identifier: Apache-2.0
#include "core/files/destination.h"

#include <deque>
#include <system_error>

#include "core/error.h"

namespace tenon::core {

namespace fs = std::filesystem;

bool may_be_planted(const struct stat& entry, const struct stat& folder, uid_t user) {
  constexpr mode_t kForAll = S_ISVTX | S_IWOTH;
  return (folder.st_mode & kForAll) == kForAll && entry.st_uid != user && entry.st_uid != folder.st_uid;
}

fs::path destination(const fs::path& path, uid_t user) {
  if (!path.has_filename()) fail(TN_INVALID, SubjectName{path.string()}, "\"", path.string(), "\" names no file");
  constexpr int kMostLinks = 40;  // as Linux
  std::deque<fs::path> left(path.begin(), path.end());
  fs::path found;  // the part of the path that is resolved: no link is in it
  for (int links = 0; !left.empty();) {
    const fs::path folder = found.empty() ? fs::path(".") : found;
    const fs::path name = left.front(), entry = found / name;
    left.pop_front();
    struct stat status = {}, around = {};
    if (::lstat(entry.c_str(), &status) != 0 || ::stat(folder.c_str(), &around) != 0) return path;  // a new file
    const bool link = S_ISLNK(status.st_mode);
    if ((link || left.empty()) && may_be_planted(status, around, user))
      fail(TN_IO, SubjectName{path.string()}, path.string(), ": cannot replace it: ", link ? "the link " : "the file ",
           entry.string(), " belongs to user ", status.st_uid, ", in a folder where all users may create files");
    if (!link) {
      found = entry;
      continue;
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(entry, error);
    if (error || ++links > kMostLinks) return path;
    left.insert(left.begin(), target.begin(), target.end());
    if (target.is_absolute()) found.clear();
  }
  std::error_code error;
  const fs::path here = fs::current_path(error);
  return error ? found : (here / found).lexically_normal();  // exact, since no link is left
}

}  // namespace tenon::core
