// The bytes of a file, gzipped or not, from its beginning to its end. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <tenon/tenon.hpp>

#include "base/not_copied.h"

namespace tenon::weights {

class Stream : base::NotCopied {
 public:
  explicit Stream(const std::string& path) : path_(path) {
    std::error_code error;
    if (!std::filesystem::exists(path, error))
      throw Error(TN_NOT_FOUND, "\"" + path + "\": there is no such file", {}, path);
    if (!std::filesystem::is_regular_file(path, error))
      throw Error(TN_IO, "\"" + path + "\": is not a regular file", {}, path);
    file_ = gzopen(path.c_str(), "rb");
    if (file_ == nullptr) throw Error(TN_IO, "\"" + path + "\": " + std::strerror(errno), {}, path);
    gzbuffer(file_, 1 << 18);
    buffer_.resize(1 << 20);
  }
  ~Stream() { gzclose_r(file_); }

  // Returns the next bytes without taking them: `count`, or as many as there are. Valid until the next call.
  std::string_view peek(size_t count) {
    if (end_ - begin_ < count) fill(count);
    return std::string_view(buffer_).substr(begin_, std::min(count, end_ - begin_));
  }
  void take(size_t count) { begin_ += count; }
  // Takes the next bytes. Throws TN_BAD_DATA if there are fewer.
  std::string_view read(size_t count, const std::string& what) {
    const std::string_view bytes = peek(count);
    if (bytes.size() < count) bad(what + ": the file ends within it");
    take(count);
    return bytes;
  }
  template <typename Number>
  Number number(const std::string& what) {
    Number result;
    std::memcpy(&result, read(sizeof result, what).data(), sizeof result);
    return result;
  }
  // Takes what comes before the next `end`, and `end`; at the end of the file the rest. what: of at most kMost bytes.
  std::string_view until(char end, const std::string& what) {
    size_t seen = 0;
    for (size_t window = kStep;; window = std::min(window * 4, kMost)) {
      const std::string_view bytes = peek(window);
      const size_t at = bytes.find(end, seen);
      if (at == std::string_view::npos && bytes.size() == kMost) bad(what + ": is longer than 1048576 bytes");
      if (at == std::string_view::npos && bytes.size() == window) {
        seen = bytes.size();
        continue;
      }
      const size_t length = std::min(at, bytes.size());
      take(std::min(length + 1, bytes.size()));
      return bytes.substr(0, length);
    }
  }
  [[nodiscard]] bool at_end() { return peek(1).empty(); }
  [[noreturn]] void bad(const std::string& reason) const {
    throw Error(TN_BAD_DATA, "\"" + path_ + "\": " + reason, {}, path_);
  }

 private:
  static constexpr size_t kStep = 1 << 12, kMost = 1 << 20;

  void fill(size_t count) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (buffer_.size() < count) buffer_.resize(count);
    while (end_ < count && !ended_) {
      const int got = gzread(file_, buffer_.data() + end_, static_cast<unsigned>(buffer_.size() - end_));
      int code = Z_OK;
      const char* const reason = gzerror(file_, &code);
      if (got < 0 || code == Z_BUF_ERROR) {
        if (code == Z_ERRNO) throw Error(TN_IO, "\"" + path_ + "\": " + std::strerror(errno), {}, path_);
        bad(std::string("damaged gzip: ") + reason);
      }
      ended_ = got == 0;
      end_ += static_cast<size_t>(got);
    }
  }

  const std::string path_;
  gzFile file_ = nullptr;
  std::string buffer_;  // bytes [begin_, end_) are the next ones
  size_t begin_ = 0, end_ = 0;
  bool ended_ = false;
};

}  // namespace tenon::weights
