// A file of predictions. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>

#include "base/not_copied.h"

namespace tenon::cli {

// A file that is written beside its place and gets its name when it is complete; a device or a pipe is written to.
class OutputFile : base::NotCopied {
 public:
  // Throws Failure with the path.
  explicit OutputFile(const std::string& path);
  // Removes what is not complete.
  ~OutputFile();

  [[nodiscard]] std::ofstream& stream() { return stream_; }
  // Throws Failure(kIo) if a byte could not be written, now or before.
  void finish();

 private:
  std::string path_, written_;  // the name in the end, and now
  std::ofstream stream_;
  bool done_ = false;
};

}  // namespace tenon::cli
