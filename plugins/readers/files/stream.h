// The bytes of a file, inflated where it is gzip. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "file.h"
#include "inflation.h"

namespace tenon::files {

class Stream {
 public:
  // Throws tn::Failure, as every call does.
  Stream(const std::string& path, uint64_t most_inflation, const volatile int32_t* cancel);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // At most `bytes` bytes; 0 only at the end, after the checksums were found right.
  uint64_t read(uint8_t* to, uint64_t bytes);
  // About as many bytes as the file may well hold; bounded by its real size.
  [[nodiscard]] uint64_t likely_bytes() const;
  [[nodiscard]] bool compressed() const { return gzip_; }

 private:
  void fill();
  uint64_t inflate_some(uint8_t* to, uint64_t bytes);
  [[noreturn]] void fail_damaged(const std::string& why) const;

  File file_;
  const volatile int32_t* cancel_;
  uint64_t offset_ = 0;          // of what fill reads next
  std::vector<uint8_t> buffer_;  // of the file; begin_ to end_ is not used yet
  size_t begin_ = 0, end_ = 0;
  bool gzip_ = false;
  z_stream inflater_ = {};
  Inflation inflation_;
  uint64_t member_bytes_ = 0;  // used of the gzip member at hand: a file may hold several, one after the other
  bool first_member_ = true;
};

}  // namespace tenon::files
