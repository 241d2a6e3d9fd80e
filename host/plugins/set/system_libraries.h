// Libraries that the system's loader finds by their names alone. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/system.h"

namespace tenon::host {

using namespace core;

// The cache of ldconfig and the default folders of the loader: what root decided, whatever the environment says.
class SystemLibraries {
 public:
  // cache: the bytes of such a file, in the format "glibc-ld.so.cache1.1"; of another, nothing is taken.
  SystemLibraries(const std::string& cache, std::vector<std::filesystem::path> folders);
  // Those of this system.
  static SystemLibraries read(FileSystem& files);

  // Returns the file that the loader takes without a search path and without LD_LIBRARY_PATH, "" if there is none.
  [[nodiscard]] std::filesystem::path find(const std::string& name) const;

 private:
  std::map<std::string, std::vector<std::filesystem::path>> cached_;  // by name, the best first
  std::vector<std::filesystem::path> folders_;
};

// Returns the file of this name that the loader takes from a folder, which may be one for this processor below it, ""
// if there is none.
[[nodiscard]] std::filesystem::path library_in(const std::filesystem::path& folder, const std::string& name);

}  // namespace tenon::host
