// Texts with numbers from 0, in a file one to a line. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <tenon/reader.hpp>
#include <unordered_map>
#include <vector>

namespace tenon::files {

// Refuses more entries than an int32 can number.
class Vocabulary {
 public:
  Vocabulary() = default;
  // The file's lines in order; an entry given twice is damage.
  Vocabulary(const std::string& path, const tn::ReaderOpen& open);
  // These texts, which differ.
  explicit Vocabulary(const std::vector<std::string_view>& texts) {
    for (const std::string_view text : texts) add(text);
  }
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
  // As a slot tells them, valid as long as this; null where there are none.
  [[nodiscard]] std::shared_ptr<const tn::Names> names() const {
    return texts_.empty() ? nullptr : std::make_shared<const tn::Names>(texts_);
  }
  // What is wrong with a text that a model, whose names these are, does not know.
  [[nodiscard]] std::string not_known(std::string_view text) const;
  // Throws where one of `texts`, which come from the attribute or file `port`, is not known.
  template <typename Texts>
  void require_known(const Texts& texts, const std::string& port) const {
    for (const std::string& text : texts)
      if (find(text) < 0) throw tn::Failure(TN_INVALID, port, not_known(text));
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
