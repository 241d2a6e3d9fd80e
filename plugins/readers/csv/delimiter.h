// What separates the fields of a record: the attributes "delimiter" and "quotes". SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <tenon/reader.hpp>

namespace tenon::csv {

// Thrown for a faulty record. The catcher adds file and line.
struct BadRecord {
  std::string why;
};

class Delimiter {
 public:
  static void describe(tn::ReaderDescription& d);
  // Throws tn::Failure on the attribute.
  explicit Delimiter(const tn::Attributes& attributes);

  // Whether a field that begins with a double quote ends at the next one.
  [[nodiscard]] bool quotes() const { return quotes_; }
  // Whether fields are separated by spaces and tabs.
  [[nodiscard]] bool blanks() const { return text_.empty(); }
  // The character between the fields of what plain returns.
  [[nodiscard]] char sign() const { return text_.size() == 1 ? text_[0] : kSeparator; }
  // The record with one character between its fields. room: memory for one that is not so, with files::kPadding bytes
  // behind it, as behind the record itself. Throws BadRecord.
  std::string_view plain(std::string_view record, std::string& room) const {
    return text_.size() == 1 ? record : rewritten(record, room);
  }

 private:
  static constexpr char kSeparator = '\x1f';  // the unit separator of ASCII

  // The bytes of the delimiter at the beginning of `text`; 0: there is none.
  [[nodiscard]] size_t length_at(std::string_view text) const;
  std::string_view rewritten(std::string_view record, std::string& room) const;

  std::string text_;  // "": blanks
  bool quotes_;
};

}  // namespace tenon::csv
