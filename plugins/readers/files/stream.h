// The bytes of a file in order, inflated if it is gzip. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "file.h"
#include "inflation.h"

namespace tenon::files {

// A plain or gzip file, read from its beginning to its end.
class Stream {
 public:
  // Every call throws tn::Failure on the path.
  Stream(const std::string& path, uint64_t most_inflation, const volatile int32_t* cancel);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Reads at most `bytes` bytes and returns their number; 0 only at the end, after the checksums were verified.
  uint64_t read(uint8_t* to, uint64_t bytes);
  // An estimate of the inflated bytes, bounded by a multiple of the file's size.
  [[nodiscard]] uint64_t likely_bytes() const;
  [[nodiscard]] bool compressed() const { return gzip_; }

 private:
  void fill();
  uint64_t inflate_some(uint8_t* to, uint64_t bytes);
  [[noreturn]] void fail_damaged(const std::string& why) const;

  File file_;
  const volatile int32_t* cancel_;
  uint64_t offset_ = 0;          // of the next bytes that fill reads
  std::vector<uint8_t> buffer_;  // of the file; [begin_, end_) is unread
  size_t begin_ = 0, end_ = 0;
  bool gzip_ = false;
  z_stream inflater_ = {};
  Inflation inflation_;
  uint64_t member_bytes_ = 0;  // read of the current gzip member; a file may have several in a row
  bool first_member_ = true;
};

}  // namespace tenon::files
