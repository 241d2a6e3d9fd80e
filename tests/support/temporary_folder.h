// A folder that no other process uses, so that any number of test programs run at the same time, and a user whom
// folders can be shut to. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace tenon_tests {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tenon-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder " + name);
    path_ = std::filesystem::canonical(name);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
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

// Takes root's rights away from this process while it lives: root may read and write everywhere. Files that are made
// meanwhile need a folder that everybody may write to.
class Unprivileged {
 public:
  Unprivileged() {
    if (was_root_ && seteuid(65534) != 0) throw std::runtime_error("cannot give up the rights of root");
  }
  ~Unprivileged() {
    if (was_root_ && seteuid(0) != 0) std::abort();
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  const bool was_root_ = geteuid() == 0;
};

}  // namespace tenon_tests
