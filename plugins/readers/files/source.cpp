// SPDX-License-Identifier: Apache-2.0
#include "source.h"

#include <algorithm>
#include <cstring>
#include <tenon/base.hpp>

#include "stream.h"

namespace tenon::files {

namespace {

constexpr size_t kAheadBytes = size_t{1} << 18;      // fits into the second level cache
constexpr uint64_t kFirstBytes = uint64_t{1} << 16;  // allocated for inflated bytes whatever the file holds

}  // namespace

Source::Source(const std::string& path, uint64_t most_inflated, const tn_memory* memory, const volatile int32_t* cancel)
    : path_(path) {
  check_cancel(cancel, path);
  file_.emplace(path);
  bytes_ = file_->bytes();
  uint8_t magic[2];
  if (file_->read(0, magic, 2) == 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
    file_.reset();
    inflate(most_inflated, memory, cancel);
  }
}

void Source::inflate(uint64_t most, const tn_memory* memory, const volatile int32_t* cancel) {
  Stream stream(path_, cancel);
  bytes_ = 0;
  inflated_ = Block(memory, std::min(most, std::max(stream.likely_bytes(), kFirstBytes)));
  while (true) {
    if (bytes_ == inflated_.size()) {
      uint8_t extra = 0;
      if (stream.read(&extra, 1) == 0) return;
      if (bytes_ >= most)
        throw tn::Failure(TN_BAD_DATA, path_, "inflates to more than " + std::to_string(most) + " bytes");
      Block larger(memory, bytes_ > most / 2 ? most : 2 * bytes_);
      std::memcpy(larger.data(), inflated_.data(), bytes_);
      inflated_.swap(larger);
      inflated_.data()[bytes_++] = extra;
    }
    const uint64_t got = stream.read(inflated_.data() + bytes_, inflated_.size() - bytes_);
    if (got == 0 && bytes_ < inflated_.size()) return;
    bytes_ += got;
  }
}

std::string_view Source::view(uint64_t offset, size_t bytes) {
  if (offset > bytes_ || bytes > bytes_ - offset)
    throw tn::Failure(TN_BAD_DATA, path_, "read beyond the end of " + std::to_string(bytes_) + " bytes");
  if (!file_) return {reinterpret_cast<const char*>(inflated_.data()) + offset, bytes};
  if (offset < begin_ || offset + bytes > begin_ + filled_) {
    const bool follows = offset >= next_ && offset - next_ <= kAheadBytes;
    const size_t wanted =
        follows ? static_cast<size_t>(std::min<uint64_t>(std::max(bytes, kAheadBytes), bytes_ - offset)) : bytes;
    if (buffer_.size() < wanted) buffer_.resize(wanted);
    filled_ = 0;  // in case the read fails
    filled_ = file_->read(offset, buffer_.data(), wanted);
    begin_ = offset;
    if (filled_ < bytes)
      throw tn::Failure(TN_BAD_DATA, path_,
                        "became shorter while it was read: had " + std::to_string(bytes_) + " bytes, now " +
                            std::to_string(offset + filled_));
  }
  next_ = offset + bytes;
  return {buffer_.data() + (offset - begin_), bytes};
}

}  // namespace tenon::files
