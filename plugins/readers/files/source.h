// The bytes of a file at any offset. A gzip file is inflated into memory when it is opened, and a small plain file is
// read into it; of others the bytes are read when they are asked for. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "file.h"
#include "inflation.h"

namespace tenon::files {

struct SourceLimits {
  uint64_t most_inflated = uint64_t{1} << 32;  // bytes; a gzip file that inflates to more is refused
  uint64_t most_kept = 0;                      // bytes; a plain file of no more is kept in memory
  uint64_t most_inflation = Inflation::kRatio;
};

class Source {
 public:
  Source(const std::string& path, const SourceLimits& limits, const tn_memory* memory, const volatile int32_t* cancel);
  // `bytes` bytes that are in memory already, with kPadding behind them.
  Source(std::string name, Block content, uint64_t bytes);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // Valid until the next call; kPadding bytes behind it may be loaded. Bytes that follow the last ones asked for are
  // read ahead, others are not.
  std::string_view view(uint64_t offset, size_t bytes);
  // Prefetches what a view will show, where it is in memory.
  void ahead(uint64_t offset, size_t bytes) const;

 private:
  void keep(const tn_memory* memory, const volatile int32_t* cancel);
  void inflate(const SourceLimits& limits, const tn_memory* memory, const volatile int32_t* cancel);

  std::string path_;
  std::optional<File> file_;  // unless all is in memory
  Block content_;
  uint64_t bytes_ = 0;
  std::vector<char> buffer_;  // of the file: filled_ bytes from begin_
  uint64_t begin_ = 0;
  size_t filled_ = 0;
  uint64_t next_ = 0;  // the offset after the last view
};

}  // namespace tenon::files
