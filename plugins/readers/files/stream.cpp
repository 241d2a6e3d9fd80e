// Reads plain and gzip files in order. SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <tenon/base.hpp>

namespace tenon::files {

namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr uint64_t kSliceBytes = uint64_t{1} << 20;  // read between two checks of the cancel token
constexpr uint64_t kLikelyRatio = 8;                 // likely ratio of inflated to compressed bytes

}  // namespace

Stream::Stream(const std::string& path, uint64_t most_inflation, const volatile int32_t* cancel)
    : file_(path), cancel_(cancel), buffer_(kBufferBytes), inflation_(file_.bytes(), most_inflation) {
  fill();
  // NOLINTNEXTLINE(cppcoreguidelines-prefer-member-initializer): what the buffer has now
  gzip_ = end_ >= 2 && buffer_[0] == 0x1f && buffer_[1] == 0x8b;
  constexpr int kGzipOnly = 16;
  if (gzip_ && inflateInit2(&inflater_, kGzipOnly + MAX_WBITS) != Z_OK) throw std::bad_alloc();
}

Stream::~Stream() {
  if (gzip_) inflateEnd(&inflater_);
}

uint64_t Stream::likely_bytes() const { return gzip_ ? file_.bytes() * kLikelyRatio : file_.bytes(); }

uint64_t Stream::read(uint8_t* to, uint64_t bytes) {
  bytes = std::min(bytes, kSliceBytes);
  check_cancel(cancel_, file_.path());
  if (gzip_) return inflate_some(to, bytes);
  if (begin_ == end_) fill();
  const size_t count = std::min(static_cast<size_t>(bytes), end_ - begin_);
  if (count != 0) std::memcpy(to, buffer_.data() + begin_, count);
  begin_ += count;
  return count;
}

uint64_t Stream::inflate_some(uint8_t* to, uint64_t bytes) {
  inflater_.next_out = to;
  inflater_.avail_out = static_cast<uInt>(bytes);
  while (inflater_.avail_out != 0) {
    if (begin_ == end_) fill();
    if (begin_ == end_ && member_bytes_ == 0 && !first_member_) break;
    inflater_.next_in = buffer_.data() + begin_;
    inflater_.avail_in = static_cast<uInt>(end_ - begin_);
    const int result = inflate(&inflater_, Z_NO_FLUSH);
    const size_t used = end_ - begin_ - inflater_.avail_in;
    begin_ += used;
    member_bytes_ += used;
    if (result == Z_STREAM_END) {
      first_member_ = false;
      member_bytes_ = 0;
      if (inflateReset(&inflater_) != Z_OK) throw std::bad_alloc();
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result == Z_BUF_ERROR && end_ == 0) {
      fail_damaged("the compressed data ends in the middle");
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail_damaged(inflater_.msg != nullptr ? inflater_.msg : "not a gzip stream");
    }
  }
  inflation_.add(bytes - inflater_.avail_out, file_.path());
  return bytes - inflater_.avail_out;
}

// Fills the empty buffer from the file; at the end of the file begin_ and end_ are 0.
void Stream::fill() {
  begin_ = 0;
  end_ = file_.read(offset_, buffer_.data(), buffer_.size());
  offset_ += end_;
}

void Stream::fail_damaged(const std::string& why) const {
  const char* const where = !first_member_ && inflater_.total_out == 0 ? " after a complete stream" : "";
  throw tn::Failure(TN_BAD_DATA, file_.path(), std::string("damaged gzip data") + where + ": " + why);
}

}  // namespace tenon::files
