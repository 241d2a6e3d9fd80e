// A file without a name, which ends with its descriptor. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "file.h"

namespace tenon::files {

// A file in the folder of temporary files, which TMPDIR names, or in memory if that is not writable. Calls throw TN_IO
// on the path of the data that it keeps.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void append(const void* bytes, size_t count) const;
  // Makes it the standard input of the process, at its beginning.
  void become_standard_input() const;
  // The file for reading, under the path of its data.
  [[nodiscard]] File take() &&;

 private:
  [[noreturn]] void fail(const char* what, int error) const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace tenon::files
