// Converts texts of files, and checks them. SPDX-License-Identifier: Apache-2.0
#include "encoding.h"

#include <algorithm>

#include "file.h"

namespace tenon::files {

void Encoding::describe(tn::ReaderDescription& d) {
  d.attribute(tn::string_attribute("encoding", "utf-8")
                  .one_of({"utf-8", "latin1"})
                  .doc("of the files; names in latin1 (ISO 8859-1) are converted to UTF-8"));
}

std::string_view Encoding::converted(std::string_view text, std::string& room) {
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), ascii)) return text;
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (!ascii(c)) result += static_cast<char>(0xC0 | byte >> 6);
    result += ascii(c) ? c : static_cast<char>(0x80 | (byte & 0x3F));
  }
  return room = std::move(result);
}

std::string not_utf8(std::string_view name) { return quoted(name) + " is not UTF-8" + kOtherEncoding; }

}  // namespace tenon::files
