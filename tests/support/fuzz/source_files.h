// Files of the checkout from which fuzz tests make damaged ones. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

inline std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
// The paths of all files below a folder of the checkout whose names end so.
inline std::vector<std::filesystem::path> source_paths(const std::string& folder, const std::string& end) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_folder() + "/" + folder))
    if (entry.path().string().ends_with(end)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}
inline std::vector<std::string> source_files(const std::string& folder, const std::string& end) {
  std::vector<std::string> files;
  for (const auto& path : source_paths(folder, end)) files.push_back(file_bytes(path));
  return files;
}

}  // namespace tenon_tests
