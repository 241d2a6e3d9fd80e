// Files beside another file: a temporary one, and one that takes its place. The functions throw Failure(kIo), with a
// message that does not name the file. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "base/not_copied.h"

namespace tenon::cli {

// A file with these bytes and the permissions of `beside`, in the same folder, under a name of its own. Removed by the
// destructor.
class TemporaryFile : base::NotCopied {
 public:
  TemporaryFile(const std::filesystem::path& beside, const std::string& bytes);
  ~TemporaryFile();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Takes the place of `beside`: at each moment the name stands for the old file or the new one. Nothing has changed
  // if it throws.
  void replace();

 private:
  const std::filesystem::path beside_;
  std::filesystem::path path_;  // empty once it has replaced the other file
};

// Returns the bytes of a regular file.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace tenon::cli
