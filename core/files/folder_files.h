// What a file system offers to the owner of a folder, besides FileSystem. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "core/system.h"

namespace tenon::core {

// A FileSystem that is not one of these has no locks, and its files replace each other.
class FolderFiles {
 public:
  virtual ~FolderFiles() = default;
  // As FileSystem::replace. anew: the file must not exist: commit() throws TN_IO if there is one, and leaves it as it
  // is. check: is called by commit() directly before the file gets its name, when it is complete on the disk; if it
  // throws, the file never appears. Empty: nothing is called.
  virtual std::unique_ptr<FileSystem::Output> create(const std::filesystem::path& path, bool anew,
                                                     std::function<void()> check) = 0;
  // Removes the temporary files that processes of this user left in a folder on this machine when they were killed.
  virtual void remove_leftovers(const std::filesystem::path& folder) = 0;

  // Owns the lock of a file, which exists while it is held. One object at a time has it, of whatever process. The
  // system ends it with the process, also if forked children go on.
  class Lock {
   public:
    virtual ~Lock() = default;
    // Takes the lock again if its file was removed. Throws TN_IO if another process has it by now.
    virtual void require() = 0;
  };
  // Returns null if the file system of the folder has no locks. Throws TN_IO naming the process that has the lock.
  virtual std::unique_ptr<Lock> lock(const std::filesystem::path& path) = 0;
};

}  // namespace tenon::core
