// The bytes of a file in order, inflated if it is compressed. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compression.h"
#include "file.h"
#include "inflation.h"
#include "zip.h"

namespace tenon::files {

// A plain or compressed file, or a member of a ZIP archive, read from its beginning to its end.
class Stream {
 public:
  // Every call throws tn::Failure on the path.
  Stream(const std::string& path, uint64_t most_inflation, const volatile int32_t* cancel);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Reads at most `bytes` bytes and returns their number; 0 only at the end, after the checksums were verified.
  uint64_t read(uint8_t* to, uint64_t bytes);
  // An estimate of the inflated bytes, bounded by a multiple of the file's size.
  [[nodiscard]] uint64_t likely_bytes() const;
  [[nodiscard]] bool compressed() const { return kind_ != nullptr || zip_; }
  // Of a file that is not compressed: the file.
  [[nodiscard]] File take_file() && { return std::move(file_); }

 private:
  void fill();
  uint64_t inflate_some(uint8_t* to, uint64_t bytes);
  [[noreturn]] void fail_damaged(const std::string& why) const;

  const Place place_;
  File file_;
  const volatile int32_t* cancel_;
  uint64_t offset_ = 0;          // of the next bytes that fill reads
  std::vector<uint8_t> buffer_;  // of the file; [begin_, end_) is unread
  size_t begin_ = 0, end_ = 0;
  const Compression* kind_ = nullptr;  // null: plain, or a ZIP archive
  std::unique_ptr<Decoder> decoder_;
  std::optional<Zip> zip_;
  Inflation inflation_;
  // Of the current stream of compressed data, of which a file may have several in a row.
  uint64_t read_ = 0, written_ = 0;
  bool first_ = true;
};

}  // namespace tenon::files
