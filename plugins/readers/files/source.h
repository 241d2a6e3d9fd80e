// The bytes of a file at any offset. A compressed file is inflated when it is opened, into memory, or into a temporary
// file if it is large; a small plain file is read into memory, and a large one is read on demand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "file.h"
#include "inflation.h"

namespace tenon::files {

struct SourceLimits {
  uint64_t most_inflated = uint64_t{1} << 32;  // bytes; a file that inflates to more is refused
  uint64_t most_kept = uint64_t{1} << 26;      // bytes; a file of at most so many, inflated, is kept in memory
  uint64_t most_inflation = Inflation::kRatio;
};

// Appends what read(to, bytes) gives until it returns 0, in memory that grows with it. *bytes: of the content, behind
// which lie kPadding more. likely: an estimate of them. Throws TN_BAD_DATA on `path` if they are more than `most`.
Block read_all(const std::function<uint64_t(uint8_t* to, uint64_t bytes)>& read, uint64_t likely, uint64_t most,
               const std::string& path, const tn_memory* memory, uint64_t* bytes);

class Stream;

// A file, or bytes in memory.
class Source {
 public:
  Source(const std::string& path, const SourceLimits& limits, const tn_memory* memory, const volatile int32_t* cancel);
  // `bytes` bytes in memory, with kPadding bytes behind them. name: for messages.
  Source(std::string name, Block content, uint64_t bytes);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // The bytes [offset, offset + bytes). Valid until the next call; kPadding bytes behind them may be loaded. ahead:
  // whether to read more if the offset follows the last view.
  std::string_view view(uint64_t offset, size_t bytes, bool ahead = true);
  // Prefetches the bytes of a later view, if they are in memory.
  void ahead(uint64_t offset, size_t bytes) const;

 private:
  void keep(const tn_memory* memory, const volatile int32_t* cancel);
  void inflate(Stream& stream, const SourceLimits& limits, const tn_memory* memory);

  std::string path_;
  std::optional<File> file_;  // empty if all bytes are in content_
  Block content_;
  uint64_t bytes_ = 0;
  std::vector<char> buffer_;  // filled_ bytes of the file, from offset begin_
  uint64_t begin_ = 0;
  size_t filled_ = 0;
  uint64_t next_ = 0;  // the offset after the last view
};

}  // namespace tenon::files
