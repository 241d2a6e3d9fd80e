// Texts numbered from 0, in a file one per line. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tenon/reader.hpp>
#include <unordered_map>
#include <vector>

namespace tenon::files {

// The names in the order in which a reader numbers them: as numbers if all are whole numbers, else by their bytes.
[[nodiscard]] std::vector<std::string> in_order(const std::set<std::string>& names);

// How often each text is there.
using Counts = std::unordered_map<std::string, uint64_t>;

// A list of different texts, which are numbered from 0. Refuses more entries than an int32 can number.
class Vocabulary {
 public:
  Vocabulary() = default;
  // The lines of a file in order. A duplicate line is TN_BAD_DATA.
  Vocabulary(const std::string& path, const tn::ReaderOpen& open);
  // The texts in order, which must be different.
  explicit Vocabulary(const std::vector<std::string_view>& texts) {
    for (const std::string_view text : texts) add(text);
  }
  // The names of a model, among which all lines of the file at `path` must be; without such names these lines. path "":
  // no file. A file that is gone is not needed where the names are known.
  Vocabulary(const std::vector<std::string_view>& learned, const std::string& path, const tn::ReaderOpen& open);
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  // Adds `text` with the next number, unless it is in the list. Returns whether it was added.
  bool add(std::string_view text);
  // Adds the texts that are there at least `least` times, from frequent to rare, equally frequent ones by their bytes,
  // as long as the list has fewer than `most` entries (0: any number).
  void add_frequent(const Counts& counts, uint64_t least, int64_t most);
  [[nodiscard]] int32_t size() const { return static_cast<int32_t>(texts_.size()); }
  [[nodiscard]] const std::deque<std::string>& texts() const { return texts_; }
  // The number of `text`, -1 if it is not in the list.
  [[nodiscard]] int32_t find(std::string_view text) const {
    const auto at = numbers_.find(text);
    return at == numbers_.end() ? -1 : at->second;
  }
  // The names of a slot, valid as long as this vocabulary; null if it is empty.
  [[nodiscard]] std::shared_ptr<const tn::Names> names() const {
    return texts_.empty() ? nullptr : std::make_shared<const tn::Names>(texts_);
  }
  // The message about a text that is not among these names of a model.
  [[nodiscard]] std::string not_known(std::string_view text) const;
  // Throws on `port`, the attribute or file of `texts`, if one of them is not in the list.
  template <typename Texts>
  void require_known(const Texts& texts, const std::string& port) const {
    for (const std::string& text : texts)
      if (find(text) < 0) throw tn::Failure(TN_INVALID, port, not_known(text));
  }
  // Writes the file atomically. An existing file must have the same entries: it is never changed, since models depend
  // on it. `reading` is the advice of the message otherwise.
  void write(const std::string& path, const std::string& reading, const tn::ReaderOpen& open) const;

 private:
  void check_same(const std::string& path, const std::string& reading, const tn::ReaderOpen& open) const;

  std::deque<std::string> texts_;  // a deque does not move its texts, to which the keys below point
  std::unordered_map<std::string_view, int32_t> numbers_;
};

}  // namespace tenon::files
