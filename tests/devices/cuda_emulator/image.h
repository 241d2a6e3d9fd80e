// Images of compiled kernels: this header, then a shared library. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace emulated {

constexpr char kMagic[8] = {'e', 'm', 'u', 'l', 'a', 't', 'e', 'd'};

struct Image {
  char magic[8];
  uint64_t bytes;  // of the library
};

// A new folder for files, deleted at the end of its scope unless TENON_EMULATOR_KEEP is set.
class Folder {
 public:
  Folder() {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    std::error_code ignored;
    if (std::getenv("TENON_EMULATOR_KEEP") == nullptr) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "tenon-emulated-XXXXXX").string();
};

}  // namespace emulated
