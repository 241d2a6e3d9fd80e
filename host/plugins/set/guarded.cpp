// Who may change a file. SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "host/plugins/set/plugin_set.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;

struct stat status_of(const fs::path& path) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0)
    fail(TN_IO, SubjectName{path.string()}, path.string(), ": ", std::generic_category().message(errno));
  return found;
}

// shared: whether it may be a folder in which everybody may create files.
void check_one(const fs::path& path, const struct stat& found, bool shared) {
  const auto user = geteuid();
  const SubjectName subject{path.string()};
  if (found.st_uid != 0 && found.st_uid != user)
    fail(TN_REFUSED, subject, path.string(), " belongs to user ", found.st_uid,
         ", who may change it; expected root or user ", user);
  const bool sticky = (found.st_mode & S_ISVTX) != 0;
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !(shared && sticky)) {
    char octal[8];
    std::snprintf(octal, sizeof octal, "%04o", static_cast<unsigned>(found.st_mode & 07777u));
    fail(TN_REFUSED, subject, path.string(), " has mode ", octal,
         ", with which others than its owner may write; remove that with chmod go-w");
  }
}

// around_file: whether `path` is a file, in whose folder others may not create files.
void check_around(const fs::path& path, bool around_file) {
  for (fs::path folder = path.parent_path();; folder = folder.parent_path()) {
    check_one(folder, status_of(folder), !around_file);
    around_file = false;
    if (folder == folder.parent_path()) return;
  }
}

}  // namespace

void check_guarded(const fs::path& path) {
  const struct stat found = status_of(path);
  check_one(path, found, false);
  check_around(path, !S_ISDIR(found.st_mode));
}

void check_unchangeable(const fs::path& folder) {
  check_one(folder, status_of(folder), true);
  check_around(folder, false);
}

bool is_within(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace tenon::host
