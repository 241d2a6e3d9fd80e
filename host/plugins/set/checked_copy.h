// Copies of a plugin and of the libraries that it brings, made of bytes that were checked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

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

// Where copies are. $ORIGIN of a copy in memory is the folder of the process's open files, in which nobody can put one.
enum class CopyPlace { kMemory, kFolder };
inline constexpr const char *kMemory = "/proc/self/fd", *kAroundMemory = "/proc";

// Returns why code cannot be loaded from sealed memory in this process, "" if it can.
[[nodiscard]] std::string memory_fault();

class OwnFolder;

// Copies in sealed memory, or in a folder of their own. They are removed with the object: what is mapped stays.
class CheckedCopy : base::NotCopied {
 public:
  // Throws TN_REFUSED if the bytes of a file are not those of the bundle; TN_IO if no memory or folder can be made from
  // which code may run.
  CheckedCopy(const Bundle& bundle, FileSystem& files, CopyPlace place);
  ~CheckedCopy();

  // In the order of the bundle; names for the system's loader, which takes two objects of one name for the same. In
  // memory a name consists of the number of an open file and of characters without meaning that state the bundle.
  [[nodiscard]] const std::vector<std::filesystem::path>& files() const { return copies_; }
  // The folder that contains nothing but the copies; kAroundMemory for those in memory.
  [[nodiscard]] std::filesystem::path root() const;

  // Whether the name of a loaded object is that of a file at `place` of a copy of a bundle with this digest, whatever
  // process or host made it; any bundle and place if they are empty.
  [[nodiscard]] static bool is_name_of(const std::string& name, const std::string& digest,
                                       const std::filesystem::path& place);

 private:
  // Makes the folders that lead from the folder of the copies to `folder`.
  void make_folders(const std::filesystem::path& folder) const;
  void use_folder();
  int create(const Bundle& bundle, const Bundle::File& file);
  // Copies a file to an open one.
  void copy(const Bundle::File& file, int to, FileSystem& files) const;

  std::unique_ptr<const OwnFolder> root_;  // null: in memory
  std::vector<std::filesystem::path> copies_;
  std::vector<int> open_;  // files in memory
};

}  // namespace tenon::host
