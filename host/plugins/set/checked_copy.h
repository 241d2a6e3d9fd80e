// Copies of a plugin and of the libraries that it brings, made of bytes that were checked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "host/plugins/set/own_folder.h"
#include "host/plugins/set/plugin_set.h"

namespace tenon::host {

// The files of a plugin, the plugin first. Each is placed in a folder of its own name relative to the others as in the
// place where it was found, so that "$ORIGIN" means the same.
class Bundle {
 public:
  // sha256: of the plugin's file.
  Bundle(const SetPlugin& entry, const std::filesystem::path& plugin, const std::string& sha256);

  struct File {
    std::filesystem::path from;
    std::filesystem::path place;  // relative
    std::string sha256;
  };
  [[nodiscard]] const std::vector<File>& files() const { return files_; }
  // A digest of all places and digests: the name of the folder of a copy.
  [[nodiscard]] const std::string& digest() const { return digest_; }

 private:
  std::vector<File> files_;
  std::string digest_;
};

// Copies in a folder of their own, which is removed with the object: what is mapped stays.
class CheckedCopy {
 public:
  // Throws TN_REFUSED if the bytes of a file are not those of the bundle; TN_IO if no folder can be made from which
  // code may run.
  CheckedCopy(const Bundle& bundle, FileSystem& files);

  // In the order of the bundle.
  [[nodiscard]] const std::vector<std::filesystem::path>& files() const { return copies_; }

  // Whether the name of a loaded object is that of a file at `place` of a copy of a bundle with this digest, whatever
  // process or host made it; any bundle and place if they are empty.
  [[nodiscard]] static bool is_name_of(const std::string& name, const std::string& digest,
                                       const std::filesystem::path& place);

 private:
  // Makes the folders that lead from the folder of the copies to `folder`.
  void make_folders(const std::filesystem::path& folder) const;
  void copy(const Bundle::File& file, FileSystem& files);

  const OwnFolder root_;
  std::vector<std::filesystem::path> copies_;
};

}  // namespace tenon::host
