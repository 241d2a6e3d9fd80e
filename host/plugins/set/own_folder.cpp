// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/own_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "host/plugins/set/plugin_set.h"

namespace tenon::host {

using namespace core;

namespace {

namespace fs = std::filesystem;

constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Nobody else may rename what is in it: what is loaded by its path must be what was written there.
fs::path temporary_folder() {
  const char* const given = std::getenv("TMPDIR");
  const fs::path named = given != nullptr && given[0] == '/' ? given : "/tmp";
  std::error_code error;
  fs::path result = fs::canonical(named, error);
  if (error == std::errc::not_enough_memory) fail(TN_OUT_OF_MEMORY, named.string(), ": ", error.message());
  if (error)
    fail(TN_IO, SubjectName{named.string()}, named.string(), ": the folder for temporary files: ", error.message(),
         "; set TMPDIR to a folder in which this user may create files");
  try {
    check_unchangeable(result);
  } catch (const Error& refusal) {  // of this moment: the plugin itself is not refused
    fail(TN_IO, SubjectName{result.string()}, "the folder for temporary files: ", refusal.message());
  }
  return result;
}

// Calls visit(name) for each entry of a folder. Leaves `folder` open.
template <typename Visit>
void each_entry(int folder, Visit visit) {
  const int again = openat(folder, ".", kOpenFolder);
  DIR* const entries = again < 0 ? nullptr : fdopendir(again);
  if (entries == nullptr) {
    if (again >= 0) close(again);
    return;
  }
  while (const dirent* const entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") visit(entry->d_name);
  }
  closedir(entries);
}

// Removes what is in an open folder, as far as it can. Follows no links; `depth` bounds the folders within folders.
void empty(int folder, int depth) {
  each_entry(folder, [&](const char* name) {
    if (unlinkat(folder, name, 0) == 0 || depth == 0) return;
    const int inner = openat(folder, name, kOpenFolder);
    if (inner < 0) return;
    empty(inner, depth - 1);
    close(inner);
    unlinkat(folder, name, AT_REMOVEDIR);
  });
}

constexpr int kDepth = 64;  // the path of a library below the folder that it shares with its plugin

// Removes the folder `name` in `base` if it belongs to this user and no process holds the lock on it.
void remove_unowned(int base, const char* name) {
  const int folder = openat(base, name, kOpenFolder);
  if (folder < 0) return;
  struct stat found = {};
  if (fstat(folder, &found) == 0 && found.st_uid == geteuid() && (found.st_mode & 077u) == 0 &&
      flock(folder, LOCK_EX | LOCK_NB) == 0) {
    empty(folder, kDepth);
    unlinkat(base, name, AT_REMOVEDIR);
  }
  close(folder);
}

void remove_leftovers(const fs::path& base, const std::string& prefix) {
  const int folder = open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  each_entry(folder, [&](const char* name) {
    const std::string_view entry = name;
    if (entry.size() == prefix.size() + OwnFolder::kDrawn && entry.starts_with(prefix)) remove_unowned(folder, name);
  });
  close(folder);
}

}  // namespace

OwnFolder::OwnFolder(const std::string& prefix) {
  const fs::path base = temporary_folder();
  remove_leftovers(base, prefix);
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i)
    if (make(base, prefix)) return;
  fail(TN_IO, SubjectName{base.string()}, base.string(), ": other processes removed ", kTries,
       " new folders before they could be used");
}

bool OwnFolder::make(const fs::path& base, const std::string& prefix) {
  std::string name = (base / (prefix + std::string(kDrawn, 'X'))).string();
  if (mkdtemp(name.data()) == nullptr) {
    const int failure = errno;
    fail(failure == ENOMEM ? TN_OUT_OF_MEMORY : TN_IO, SubjectName{base.string()}, base.string(),
         ": cannot create a folder for the checked copy of a plugin: ", std::generic_category().message(failure),
         "; set TMPDIR to a folder in which this user may create files");
  }
  const int folder = open(name.c_str(), kOpenFolder);
  // Between the two calls another process may have found it without an owner.
  struct stat found = {};
  if (folder < 0 || flock(folder, LOCK_EX | LOCK_NB) != 0 || fstat(folder, &found) != 0 || found.st_nlink == 0 ||
      found.st_uid != geteuid()) {
    if (folder >= 0) close(folder);
    rmdir(name.c_str());
    return false;
  }
  folder_ = folder;
  name_ = std::move(name);
  return true;
}

OwnFolder::~OwnFolder() {
  empty(folder_, kDepth);
  rmdir(name_.c_str());
  close(folder_);
}

}  // namespace tenon::host
