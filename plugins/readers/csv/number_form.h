// How the numbers of a file are written: the attributes decimal and thousands. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <tenon/reader.hpp>

namespace tenon::csv {

class NumberForm {
 public:
  NumberForm() = default;
  NumberForm(char decimal, std::string thousands) : decimal_(decimal), thousands_(std::move(thousands)) {}
  // Declares the attributes.
  static void describe(tn::ReaderDescription& d);
  explicit NumberForm(const tn::Attributes& attributes);

  // Whether numbers are written as programs write them.
  [[nodiscard]] bool is_plain() const { return decimal_ == '.' && thousands_.empty(); }
  // The number `text` as programs write it, without a plus sign; empty if it is written in another form. Valid as long
  // as both arguments.
  [[nodiscard]] std::string_view plain(std::string_view text, std::string& room) const;
  // The end of a message that `text` is no number: the attributes with which it is one, or "".
  [[nodiscard]] static std::string hint(std::string_view text);

 private:
  char decimal_ = '.';
  std::string thousands_;  // one character of UTF-8; "": none
};

}  // namespace tenon::csv
