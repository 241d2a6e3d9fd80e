// SPDX-License-Identifier: Apache-2.0
#include "core/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "base/files.h"
#include "core/error.h"

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

void make_folder(const std::filesystem::path& folder) {
  const auto refuse = [&](tn_status code, const auto&... parts) {
    fail(code, SubjectName{folder.string()}, folder.string(), ": ", parts...);
  };
  struct stat found = {};
  if (::stat(folder.c_str(), &found) == 0) {
    if (!S_ISDIR(found.st_mode)) refuse(TN_INVALID, "expected a folder, found a file");
    return;
  }
  if (::mkdir(folder.c_str(), 0777) != 0) {
    if (errno == EEXIST && ::stat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) return;  // made meanwhile
    const int error = errno;
    refuse(error == ENOENT || error == ENOTDIR ? TN_NOT_FOUND : TN_IO,
           "cannot create the folder: ", std::generic_category().message(error));
  }
  if (!base::sync_folder(base::folder_of(folder)))
    refuse(TN_IO, "cannot write the folder around it to the disk: ", std::generic_category().message(errno));
}

std::string make_new_folder(const std::filesystem::path& folder, const std::string& name) {
  for (int64_t number = 0;; ++number) {
    std::string tried = number == 0 ? name : text(name, '-', number);
    const std::string path = (folder / tried).string();
    if (::mkdir(path.c_str(), 0777) == 0) return tried;
    if (errno != EEXIST)
      fail(TN_IO, SubjectName{path}, path, ": cannot create the folder: ", std::generic_category().message(errno));
  }
}

}  // namespace tenon::core
