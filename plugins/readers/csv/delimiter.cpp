// Delimiters of one character, of several, and blanks. SPDX-License-Identifier: Apache-2.0
#include "delimiter.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "number.h"

namespace tenon::csv {

namespace {

constexpr const char* kBlanks = "blanks";

bool is_fit(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) == 0 && byte >= '\t' && byte <= '~' && std::strchr("\"\r\n+-.", byte) == nullptr;
}

}  // namespace

void Delimiter::describe(tn::ReaderDescription& d) {
  d.attribute(
      tn::string_attribute("delimiter", ",")
          .doc("what stands between two fields: a character, or several, such as \"::\"; \"blanks\": spaces and "
               "tabs, any number of them"));
  d.attribute(tn::bool_attribute("quotes", true)
                  .doc("a field that begins with a double quote ends at the next one; false: quotes are text"));
}

Delimiter::Delimiter(const tn::Attributes& attributes)
    : text_(attributes.text("delimiter")), quotes_(attributes.flag("quotes")) {
  constexpr size_t kMost = 16;
  if (text_ == kBlanks)
    text_.clear();
  else if (text_.empty() || text_.size() > kMost || !std::all_of(text_.begin(), text_.end(), is_fit))
    throw tn::Failure(TN_INVALID, "delimiter",
                      "expected one character, or several, other than letters, digits, quotes and signs, such as "
                      "\",\", \";\", a tab or \"::\"; or \"blanks\"");
}

size_t Delimiter::length_at(std::string_view text) const {
  if (!text_.empty()) return text.substr(0, text_.size()) == text_ ? text_.size() : 0;
  return std::min(text.find_first_not_of(" \t"), text.size());
}

std::string_view Delimiter::rewritten(std::string_view record, std::string& room) const {
  room.clear();
  bool quoted = false;
  for (size_t at = 0; at < record.size();) {
    const size_t length = quoted ? 0 : length_at(record.substr(at));
    const bool outside = text_.empty() && (room.empty() || at + length == record.size());  // blanks at the ends
    if (length != 0 && !outside) room += kSeparator;
    at += length;
    if (length != 0) continue;
    const char c = record[at++];
    if (c == kSeparator) throw BadRecord{"has the control character 31, which no text has"};
    quoted = quoted != (quotes_ && c == '"');
    room += c;
  }
  const size_t bytes = room.size();
  room.append(files::kPadding, '\0');
  return {room.data(), bytes};
}

}  // namespace tenon::csv
