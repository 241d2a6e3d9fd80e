// Reads plain and compressed files in order. SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tenon/base.hpp>

namespace tenon::files {

namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr uint64_t kSliceBytes = uint64_t{1} << 20;  // read between two checks of the cancel token
constexpr uint64_t kLikelyRatio = 8;                 // likely ratio of inflated to compressed bytes

}  // namespace

Stream::Stream(const std::string& path, uint64_t most_inflation, const volatile int32_t* cancel)
    : place_(place_of(path)),
      file_(place_.file),
      cancel_(cancel),
      buffer_(kBufferBytes),
      inflation_(file_.bytes(), most_inflation) {
  fill();
  const std::string_view beginning(reinterpret_cast<const char*>(buffer_.data()), std::min(end_, kBeginningBytes));
  if (is_zip(beginning)) {
    zip_.emplace(place_.file, most_inflation, cancel);
    find_member(*zip_, place_.file, place_.member);
  } else if (!place_.member.empty()) {
    throw tn::Failure(TN_NOT_FOUND, path,
                      "there is no such file: " + place_.file + " is neither a folder nor a ZIP archive");
  }
  kind_ = compression_of(beginning);
  if (kind_ != nullptr) decoder_ = decoder_of(*kind_, path);
}

uint64_t Stream::likely_bytes() const {
  const uint64_t likely = compressed() ? file_.bytes() * kLikelyRatio : file_.bytes();
  return zip_ ? std::min(likely, zip_->stated_bytes()) : likely;
}

uint64_t Stream::read(uint8_t* to, uint64_t bytes) {
  if (zip_) return zip_->read(to, bytes);
  bytes = std::min(bytes, kSliceBytes);
  check_cancel(cancel_, file_.path());
  if (kind_ != nullptr) return inflate_some(to, bytes);
  if (begin_ == end_) fill();
  const size_t count = std::min(static_cast<size_t>(bytes), end_ - begin_);
  if (count != 0) std::memcpy(to, buffer_.data() + begin_, count);
  begin_ += count;
  return count;
}

uint64_t Stream::inflate_some(uint8_t* to, uint64_t bytes) {
  uint64_t done = 0;
  while (done < bytes) {
    if (begin_ == end_) fill();
    if (begin_ == end_ && read_ == 0 && !first_) break;
    const Decoder::Step step = decoder_->step(buffer_.data() + begin_, end_ - begin_, to + done, bytes - done);
    begin_ += step.read;
    read_ += step.read;
    written_ += step.written;
    done += step.written;
    if (step.fault != nullptr) fail_damaged(step.fault);
    if (step.ended) {
      first_ = false;
      read_ = written_ = 0;
      decoder_->restart();
    } else if (end_ == 0 && step.written == 0) {
      fail_damaged("the compressed data ends in the middle");
    }
  }
  inflation_.add(done, file_.path());
  return done;
}

// Fills the empty buffer from the file; at the end of the file begin_ and end_ are 0.
void Stream::fill() {
  begin_ = 0;
  end_ = file_.read(offset_, buffer_.data(), buffer_.size());
  offset_ += end_;
}

void Stream::fail_damaged(const std::string& why) const {
  const char* const where = !first_ && written_ == 0 ? " after a complete stream" : "";
  throw tn::Failure(TN_BAD_DATA, file_.path(), std::string("damaged ") + kind_->name + " data" + where + ": " + why);
}

}  // namespace tenon::files
