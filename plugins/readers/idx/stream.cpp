// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "idx_file.h"

namespace tenon::idx {

namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr uint64_t kSliceBytes = uint64_t{1} << 20;  // between two looks at the cancel token
constexpr uint64_t kLikelyRatio = 8;                 // of inflated to compressed bytes

}  // namespace

Stream::Stream(const std::string& path, const volatile int32_t* cancel)
    : path_(path), cancel_(cancel), buffer_(kBufferBytes) {
  do {
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a named pipe must not make it wait
  } while (file_ < 0 && errno == EINTR);
  if (file_ < 0) fail_system("open", errno);
  try {
    struct stat status = {};
    if (::fstat(file_, &status) != 0) fail_system("open", errno);
    if (!S_ISREG(status.st_mode)) throw Failure{TN_INVALID, path_, "not a regular file"};
    file_bytes_ = static_cast<uint64_t>(status.st_size);
    fill();
    gzip_ = end_ >= 2 && buffer_[0] == 0x1f && buffer_[1] == 0x8b;
    constexpr int kGzipOnly = 16;
    if (gzip_ && inflateInit2(&inflater_, kGzipOnly + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  } catch (...) {
    ::close(file_);
    throw;
  }
}

Stream::~Stream() {
  if (gzip_) inflateEnd(&inflater_);
  ::close(file_);
}

uint64_t Stream::likely_bytes() const { return gzip_ ? file_bytes_ * kLikelyRatio : file_bytes_; }

uint64_t Stream::read(uint8_t* to, uint64_t bytes) {
  bytes = std::min(bytes, kSliceBytes);
  if (cancel_ != nullptr && *cancel_ != 0) throw Failure{TN_CANCELLED, path_, "cancelled while it was read"};
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
  return bytes - inflater_.avail_out;
}

// Fills the empty buffer as far as the file goes; at its end begin_ and end_ are 0.
void Stream::fill() {
  begin_ = end_ = 0;
  while (end_ < buffer_.size()) {
    const ssize_t got = ::read(file_, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system("read", errno);
    if (got == 0) break;
    end_ += static_cast<size_t>(got);
  }
}

void Stream::fail_system(const char* what, int error) const {
  const bool absent = error == ENOENT || error == ENOTDIR;
  throw Failure{static_cast<tn_status>(absent ? TN_NOT_FOUND : TN_IO), path_,
                std::string("cannot ") + what + " it: " + std::generic_category().message(error)};
}

void Stream::fail_damaged(const std::string& why) const {
  const char* const where = !first_member_ && inflater_.total_out == 0 ? " after a complete stream" : "";
  throw Failure{TN_BAD_DATA, path_, std::string("damaged gzip data") + where + ": " + why};
}

}  // namespace tenon::idx
