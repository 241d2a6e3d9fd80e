// The fields of one record, as RFC 4180 has them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "number.h"

namespace tenon::csv {

// Bit i of the result says whether byte i of the 64 at `at` is `byte`.
inline uint64_t find_bytes(const char* at, char byte) {
  using Bytes [[gnu::vector_size(16)]] = uint8_t;
  using Words [[gnu::vector_size(16)]] = uint64_t;
  constexpr uint64_t kOnes = 0x0101010101010101, kBits = 0x8040201008040201;
  uint64_t result = 0;
  for (unsigned i = 0; i < 64; i += 16) {
    Bytes text;
    std::memcpy(&text, at + i, sizeof text);
    const Words found = reinterpret_cast<Words>(text == static_cast<uint8_t>(byte)) & kBits;  // a bit for each byte
    result |= (found[0] * kOnes >> 56 | found[1] * kOnes >> 56 << 8) << i;                    // their sums
  }
  return result;
}

// A position in a record with files::kPadding bytes behind it: the beginning of a field, or its end, where a delimiter
// or nothing follows.
class Fields {
 public:
  Fields(std::string_view record, char delimiter, bool quotes)
      : begin_(record.data()), at_(begin_), end_(at_ + record.size()), delimiter_(delimiter), quotes_(quotes) {
    find(at_);
  }

  [[nodiscard]] std::string_view record() const { return {begin_, static_cast<size_t>(end_ - begin_)}; }
  [[nodiscard]] const char* at() const { return at_; }
  [[nodiscard]] bool done() const { return at_ == end_; }

  // The end of the field that begins at the position, if it has no quotes.
  const char* stop() {
    while (ends_ == 0) find(block_ + kBlock);
    return block_ + std::countr_zero(ends_);
  }
  // Moves to the end of the field, which is stop().
  void move(const char* stop) { at_ = stop; }
  // Moves from the delimiter at the end of a field to the beginning of the next field.
  void pass() {
    ++at_;
    ends_ &= ends_ - 1;
  }

  // Returns the field at the position without its quotes, and moves to its end. If the field is malformed, sets *why
  // and returns null data. room: memory for a text with doubled quotes.
  std::string_view take(std::string& room, const char** why) {
    if (!done() && quotes_ && *at_ == '"') return take_quoted(room, why);
    const std::string_view text(at_, static_cast<size_t>(stop() - at_));
    if (quotes_ && std::memchr(at_, '"', text.size()) != nullptr) {
      *why = "a quote inside a field that does not begin with one; quotes = false takes quotes as text";
      return {};
    }
    at_ += text.size();
    return text;
  }

 private:
  std::string_view take_quoted(std::string& room, const char** why) {
    room.clear();
    const char* from = ++at_;
    while (true) {
      const auto* quote = static_cast<const char*>(std::memchr(at_, '"', static_cast<size_t>(end_ - at_)));
      if (quote == nullptr) {
        *why = "a quoted field has no end";
        return {};
      }
      at_ = quote + 1;
      if (at_ == end_ || *at_ == delimiter_) {
        find(at_);
        const std::string_view rest(from, static_cast<size_t>(quote - from));
        if (room.empty()) return rest;
        return room.append(rest);
      }
      if (*at_ != '"') {
        *why = "text after the closing quote of a field; quotes = false takes quotes as text";
        return {};
      }
      room.append(from, at_);  // one of the two quotes
      from = ++at_;
    }
  }

  // Finds the ends of fields in the block that begins at `block`.
  void find(const char* block) {
    block_ = block;
    ends_ = find_bytes(block, delimiter_);
    if (end_ - block >= kBlock) return;
    const uint64_t last = uint64_t{1} << (end_ - block);
    ends_ = (ends_ & (last - 1)) | last;
  }

  static constexpr ptrdiff_t kBlock = 64;
  static_assert(kBlock <= files::kPadding);

  const char* begin_;
  const char* at_;
  const char* end_;
  char delimiter_;
  bool quotes_;
  const char* block_ = nullptr;
  uint64_t ends_ = 0;  // of the fields of the block that end at the position or behind it; bit i is byte i
};

// The text without spaces and tabs at its ends, except delimiters.
inline std::string_view trimmed(std::string_view text, char delimiter) {
  const auto blank = [&](char c) { return (c == ' ' || c == '\t') && c != delimiter; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace tenon::csv
