// The bytes of a file at any offset: of a plain file read when they are asked for, of a gzip file inflated into memory
// when it is opened. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "file.h"

namespace tenon::files {

class Source {
 public:
  // A gzip file that inflates to more than `most_inflated` bytes is refused.
  Source(const std::string& path, uint64_t most_inflated, const tn_memory* memory, const volatile int32_t* cancel);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // Valid until the next call. Bytes that follow the last ones asked for are read ahead, others are not.
  std::string_view view(uint64_t offset, size_t bytes);

 private:
  void inflate(uint64_t most, const tn_memory* memory, const volatile int32_t* cancel);

  std::string path_;
  std::optional<File> file_;  // of a plain file
  Block inflated_;
  uint64_t bytes_ = 0;
  std::vector<char> buffer_;  // of a plain file: filled_ bytes from begin_
  uint64_t begin_ = 0;
  size_t filled_ = 0;
  uint64_t next_ = 0;  // the offset after the last view
};

}  // namespace tenon::files
