// Reads plain and compressed files at any offset. SPDX-License-Identifier: Apache-2.0
#include "source.h"

#include <algorithm>
#include <cstring>
#include <tenon/reader.hpp>
#include <utility>

#include "number.h"
#include "stream.h"
#include "temporary_file.h"

namespace tenon::files {

namespace {

constexpr size_t kAheadBytes = size_t{1} << 18;      // read ahead; fits into the second-level cache
constexpr uint64_t kSliceBytes = uint64_t{1} << 24;  // read between two checks of the cancel token
constexpr uint64_t kFirstBytes = uint64_t{1} << 16;  // least memory allocated for inflated bytes

void check_inflated(uint64_t bytes, uint64_t most, const std::string& path) {
  if (bytes > most) throw tn::Failure(TN_BAD_DATA, path, "inflates to more than " + std::to_string(most) + " bytes");
}

}  // namespace

Block read_all(const std::function<uint64_t(uint8_t* to, uint64_t bytes)>& read, uint64_t likely, uint64_t most,
               const std::string& path, const tn_memory* memory, uint64_t* bytes) {
  uint64_t done = 0, room = std::min(most, std::max(likely, kFirstBytes));
  Block content(memory, room + kPadding);
  while (true) {
    uint8_t extra = 0;
    const uint64_t got = done == room ? read(&extra, 1) : read(content.data() + done, room - done);
    *bytes = done + got;
    if (got == 0) return content;
    if (done == room) {
      check_inflated(*bytes, most, path);
      room = done > most / 2 ? most : 2 * done;
      Block larger(memory, room + kPadding);
      std::memcpy(larger.data(), content.data(), done);
      content.swap(larger);
      content.data()[done] = extra;
    }
    done += got;
  }
}

Source::Source(const std::string& path, const SourceLimits& limits, const tn_memory* memory,
               const volatile int32_t* cancel)
    : path_(path) {
  check_cancel(cancel, path);
  Stream stream(path, limits.most_inflation, cancel);
  if (stream.compressed()) {
    inflate(stream, limits, memory);
  } else {
    file_.emplace(std::move(stream).take_file());
    bytes_ = file_->bytes();
    if (bytes_ <= limits.most_kept) keep(memory, cancel);
  }
  if (!file_) std::memset(content_.data() + bytes_, 0, kPadding);
}

Source::Source(std::string name, Block content, uint64_t bytes)
    : path_(std::move(name)), content_(std::move(content)), bytes_(bytes) {
  std::memset(content_.data() + bytes_, 0, kPadding);
}

// Inflates into memory and, once that is more than is kept there, into a temporary file.
void Source::inflate(Stream& stream, const SourceLimits& limits, const tn_memory* memory) {
  const uint64_t most_kept = std::min(limits.most_kept, limits.most_inflated);
  uint64_t kept = 0;
  const auto read_kept = [&](uint8_t* to, uint64_t bytes) {
    const uint64_t got = kept == most_kept ? 0 : stream.read(to, std::min(bytes, most_kept - kept));
    kept += got;
    return got;
  };
  content_ = read_all(read_kept, std::min(stream.likely_bytes(), most_kept), most_kept, path_, memory, &bytes_);
  std::vector<uint8_t> more(kAheadBytes);
  uint64_t got = kept == most_kept ? stream.read(more.data(), more.size()) : 0;
  if (got == 0) return;
  TemporaryFile file(path_);
  file.append(content_.data(), static_cast<size_t>(bytes_));
  content_ = Block();
  for (; got != 0; got = stream.read(more.data(), more.size())) {
    bytes_ += got;
    check_inflated(bytes_, limits.most_inflated, path_);
    file.append(more.data(), static_cast<size_t>(got));
  }
  file_.emplace(std::move(file).take());
}

void Source::keep(const tn_memory* memory, const volatile int32_t* cancel) {
  content_ = Block(memory, bytes_ + kPadding);
  uint64_t done = 0;
  for (size_t got = 1; got != 0 && done < bytes_; done += got) {
    check_cancel(cancel, path_);
    got = file_->read(done, content_.data() + done, static_cast<size_t>(std::min(bytes_ - done, kSliceBytes)));
  }
  bytes_ = done;
  file_.reset();
}

std::string_view Source::view(uint64_t offset, size_t bytes, bool ahead) {
  if (offset > bytes_ || bytes > bytes_ - offset)
    throw tn::Failure(TN_BAD_DATA, path_, "read beyond the end of " + std::to_string(bytes_) + " bytes");
  if (!file_) return {reinterpret_cast<const char*>(content_.data()) + offset, bytes};
  if (offset < begin_ || offset + bytes > begin_ + filled_) {
    const bool follows = ahead && offset >= next_ && offset - next_ <= kAheadBytes;
    const size_t wanted =
        follows ? static_cast<size_t>(std::min<uint64_t>(std::max(bytes, kAheadBytes), bytes_ - offset)) : bytes;
    if (buffer_.size() < wanted + kPadding) buffer_.resize(wanted + kPadding);
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

void Source::ahead(uint64_t offset, size_t bytes) const {
  if (!file_) tn::prefetch(content_.data() + offset, bytes);
}

}  // namespace tenon::files
