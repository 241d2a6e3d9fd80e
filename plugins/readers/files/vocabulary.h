// Texts with numbers from 0, in a file one to a line. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <tenon/reader.hpp>
#include <unordered_map>

namespace tenon::files {

// Refuses more entries than an int32 can number.
class Vocabulary {
 public:
  Vocabulary() = default;
  // The file's lines in order; an entry given twice is damage.
  Vocabulary(const std::string& path, const tn::ReaderOpen& open);
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  // Gives `text` the next number, unless it has one. True when it was new.
  bool add(std::string_view text);
  [[nodiscard]] int32_t size() const { return static_cast<int32_t>(texts_.size()); }
  [[nodiscard]] const std::deque<std::string>& texts() const { return texts_; }
  // -1 when there is none.
  [[nodiscard]] int32_t find(std::string_view text) const {
    const auto at = numbers_.find(text);
    return at == numbers_.end() ? -1 : at->second;
  }
  // Makes the file, at once or not at all. One that is there already must hold these entries: it is never changed, as
  // models depend on it. `reading` says how to read it instead.
  void write(const std::string& path, const std::string& reading, const tn::ReaderOpen& open) const;

 private:
  void check_same(const std::string& path, const std::string& reading, const tn::ReaderOpen& open) const;

  std::deque<std::string> texts_;  // in place: the keys below point into it
  std::unordered_map<std::string_view, int32_t> numbers_;
};

}  // namespace tenon::files
