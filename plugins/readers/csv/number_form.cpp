// Reads numbers with decimal commas and thousands separators. SPDX-License-Identifier: Apache-2.0
#include "number_form.h"

#include <algorithm>
#include <cctype>

#include "file.h"
#include "number.h"

namespace tenon::csv {

namespace {

bool are_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Appends the digits of groups with a separator between them: 1 to 3 digits, then three in each, or two in all but the
// last, as in India. False if the text is another.
bool append_groups(std::string_view text, std::string_view separator, std::string& to) {
  for (bool first = true;; first = false) {
    const size_t end = std::min(text.find(separator), text.size());
    const std::string_view group = text.substr(0, end);
    const bool last = end == text.size(), only = first && last;
    if (!are_digits(group)) return false;
    if (!only && (group.empty() || group.size() > 3 || (!first && group.size() < (last ? 3U : 2U)))) return false;
    to.append(group);
    if (last) return true;
    text.remove_prefix(end + separator.size());
  }
}

}  // namespace

void NumberForm::describe(tn::ReaderDescription& d) {
  d.attribute(tn::string_attribute("decimal", ".")
                  .one_of({".", ","})
                  .doc("the sign before the decimals of numbers, as in \"0,5\""));
  d.attribute(tn::string_attribute("thousands", "")
                  .doc("the character between groups of digits, as in \"1,050.50\" or \"1 050\"; \"\": none"));
}

NumberForm::NumberForm(const tn::Attributes& attributes)
    : decimal_(attributes.text("decimal")[0]), thousands_(attributes.text("thousands")) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };  // a character
  const bool one = files::is_utf8(thousands_) && std::count_if(thousands_.begin(), thousands_.end(), continues) + 1 ==
                                                     static_cast<ptrdiff_t>(thousands_.size());
  const auto first = static_cast<unsigned char>(thousands_.empty() ? ' ' : thousands_[0]);
  if (!thousands_.empty() && (!one || std::isalnum(first) != 0 || first < ' ' || std::strchr("+-\"", first) != nullptr))
    throw tn::Failure(TN_INVALID, "thousands",
                      "expected one character other than a letter, digit, quote or sign, such as \",\" or a space");
  if (thousands_.size() == 1 && thousands_[0] == decimal_)
    throw tn::Failure(TN_INVALID, "thousands", "is " + files::quoted(thousands_) + ", as decimal is");
}

std::string_view NumberForm::plain(std::string_view text, std::string& room) const {
  if (is_plain()) return files::without_plus(text);
  room.clear();
  size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  if (at == 1 && text[0] == '-') room += '-';
  const size_t point = std::min(text.find(decimal_, at), text.size());
  size_t stop = std::min(text.find_first_of("eE", at), point);
  if (!thousands_.empty()) {
    if (!append_groups(text.substr(at, stop - at), thousands_, room)) return {};
  } else {
    if (!are_digits(text.substr(at, stop - at))) return {};
    room.append(text, at, stop - at);
  }
  if (stop == point && point < text.size()) {
    room += '.';
    ++stop;
  }
  const std::string_view rest = text.substr(stop);
  if (rest.find('.') != std::string_view::npos) return {};
  return room.append(rest);
}

std::string NumberForm::hint(std::string_view text) {
  const struct {
    NumberForm form;
    const char* attributes;
  } forms[] = {{{',', ""}, "decimal = \",\""},
               {{'.', ","}, "thousands = \",\""},
               {{',', "."}, "decimal = \",\" and thousands = \".\""},
               {{'.', " "}, "thousands = \" \""}};
  std::string room, result;
  int forms_that_read = 0;
  const auto is_number = [](std::string_view digits) {
    double value = 0;
    const char* const end = digits.data() + digits.size();
    return !digits.empty() && files::read_float(digits.data(), end, &value) == end;
  };
  if (is_number(files::without_plus(text))) return "";
  for (const auto& [form, attributes] : forms) {
    if (text.find(form.thousands_) == std::string_view::npos || !is_number(form.plain(text, room))) continue;
    result += (forms_that_read++ == 0 ? "; " : " or ") + std::string(attributes);
  }
  return forms_that_read == 0 ? "" : result + " reads it";
}

}  // namespace tenon::csv
