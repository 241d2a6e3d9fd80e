// The image files of folders. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tenon::images {

// Lists a folder and its class folders, and counts the files in them that are not images. Names with a dot in front and
// the folders "__MACOSX" of archives are hidden.
class Folders {
 public:
  Folders(std::string folder, const volatile int32_t* cancel) : folder_(std::move(folder)), cancel_(cancel) {}

  // The names of the class folders, in the order of their numbers.
  [[nodiscard]] std::vector<std::string> classes() const;
  // The paths of the images in a class folder and in the folders below it, links to folders excepted, sorted.
  [[nodiscard]] std::vector<std::string> images_of(const std::string& class_name);
  // The paths of the images beside the class folders, sorted.
  [[nodiscard]] std::vector<std::string> images_beside();
  // A sentence about the files that are not read; empty if there are none.
  [[nodiscard]] std::string skipped() const;
  // Counts a file that is not read, of a kind such as "beside the class folders".
  void skip(const std::string& kind) { ++skipped_[kind]; }

 private:
  void add_images(const std::filesystem::path& folder, bool below, std::vector<std::string>& paths);

  std::string folder_;
  const volatile int32_t* cancel_;
  std::map<std::string, int64_t> skipped_;  // numbers of files, by kind
};

}  // namespace tenon::images
