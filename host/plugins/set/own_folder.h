// Folders for files that this process alone uses for a moment. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace tenon::host {

// A new folder below that for temporary files, TMPDIR or /tmp, which only this user may enter. Removed with the object,
// with all that is in it. If the process is killed, the next folder of this user with the same prefix removes it: the
// owner of a folder holds a lock on it, which ends with the process.
class OwnFolder {
 public:
  // Its name is `prefix` and kDrawn characters. TN_IO if there can be none or if others may rename what is in
  // the folder for temporary files, TN_OUT_OF_MEMORY without memory.
  explicit OwnFolder(const std::string& prefix);
  ~OwnFolder();
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

  [[nodiscard]] std::filesystem::path path() const { return name_; }

  static constexpr size_t kDrawn = 6;

 private:
  // Makes and locks a folder; false if another process took it for one that nobody owns.
  bool make(const std::filesystem::path& base, const std::string& prefix);

  std::string name_;  // absolute
  int folder_ = -1;   // open and locked
};

}  // namespace tenon::host
