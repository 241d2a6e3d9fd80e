// Who may change a file. SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "core/files/path_walk.h"
#include "host/plugins/set/plugin_set.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

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
  if ((found.st_mode & kOthersWrite) != 0 && !(shared && sticky)) {
    char octal[8];
    std::snprintf(octal, sizeof octal, "%04o", static_cast<unsigned>(found.st_mode & 07777u));
    fail(TN_REFUSED, subject, path.string(), " has mode ", octal,
         ", with which others than its owner may write; remove that with chmod go-w");
  }
}

// Returns a path without ".." and without a "/" at its end. Exact if no link is in it.
fs::path normal(const fs::path& path) {
  const fs::path result = path.lexically_normal();
  return result.has_filename() ? result : result.parent_path();
}

// Checks the folders in which the names of a path are looked up, and the links among them. Returns where it leads,
// without links. may_lack: whether the path may lead to nothing; then the result is the last folder on the way.
fs::path check_way(const fs::path& path, bool may_lack) {
  const auto check = [&](const core::PathStep& step) {
    const fs::path folder = normal(step.folder);
    try {
      check_one(folder, step.around, true);
    } catch (const Error& refusal) {
      if (is_within(path, folder)) throw;
      throw Error(refusal.code(), text(refusal.message(), "; ", path.string(), " leads through it"), {},
                  refusal.subject());
    }
    const auto owner = step.status.st_uid, user = geteuid();
    if (step.is_link() && (step.around.st_mode & kOthersWrite) != 0 && owner != 0 && owner != user)
      fail(TN_REFUSED, SubjectName{step.entry.string()}, "the link ", step.entry.string(), " belongs to user ", owner,
           ", who may replace it; expected root or user ", user);
  };
  std::error_code error;
  const fs::path end = core::walk_path(path, check, error);
  const bool lacks = error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (error && !(may_lack && lacks))
    fail(error == std::errc::not_enough_memory ? TN_OUT_OF_MEMORY : TN_IO, SubjectName{path.string()}, path.string(),
         ": ", error.message());
  return normal(end);
}

// In the folder of a file others may not create files, either.
void check_end(const fs::path& end) {
  const struct stat found = status_of(end);
  check_one(end, found, false);
  if (!S_ISDIR(found.st_mode)) check_one(end.parent_path(), status_of(end.parent_path()), false);
}

}  // namespace

void check_guarded(const fs::path& path) { check_end(check_way(path, false)); }

void check_guarded_search(const fs::path& folder) { check_end(check_way(folder, true)); }

void check_unchangeable(const fs::path& folder) {
  const fs::path end = check_way(folder, false);
  check_one(end, status_of(end), true);
}

bool is_within(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace tenon::host
