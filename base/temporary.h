// A new folder in that for temporary files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/not_copied.h"

namespace tenon::base {

// Creates a folder "<prefix>-<six characters>" which only this user may enter. Throws std::system_error.
[[nodiscard]] inline std::filesystem::path make_temporary_folder(const std::string& prefix = "tenon") {
  std::string name = (std::filesystem::temp_directory_path() / (prefix + "-XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "cannot create a folder for temporary files, " + name);
  return std::filesystem::canonical(name);
}

// A folder that is removed with what is in it at the end of the object's life.
class TemporaryFolder : base::NotCopied {
 public:
  explicit TemporaryFolder(const std::string& prefix = "tenon") : path_(make_temporary_folder(prefix)) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // The path of a file in the folder.
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace tenon::base
