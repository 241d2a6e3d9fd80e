// SPDX-License-Identifier: Apache-2.0
#include "core/files/destination.h"

#include <system_error>

#include "core/error.h"
#include "core/files/path_walk.h"

namespace tenon::core {

namespace fs = std::filesystem;

bool may_be_planted(const struct stat& entry, const struct stat& folder, uid_t user) {
  constexpr mode_t kForAll = S_ISVTX | S_IWOTH;
  return (folder.st_mode & kForAll) == kForAll && entry.st_uid != user && entry.st_uid != folder.st_uid;
}

fs::path destination(const fs::path& path, uid_t user) {
  if (!path.has_filename()) fail(TN_INVALID, SubjectName{path.string()}, "\"", path.string(), "\" names no file");
  std::error_code error;
  const auto check = [&](const PathStep& at) {
    if ((at.is_link() || at.last) && may_be_planted(at.status, at.around, user))
      fail(TN_IO, SubjectName{path.string()}, path.string(),
           ": cannot replace it: ", at.is_link() ? "the link " : "the file ", at.entry.string(), " belongs to user ",
           at.status.st_uid, ", in a folder where all users may create files");
  };
  const fs::path found = walk_path(path, check, error);
  if (error) return path;  // a new file
  const fs::path here = fs::current_path(error);
  return error ? found : (here / found).lexically_normal();  // exact, since no link is left
}

}  // namespace tenon::core
