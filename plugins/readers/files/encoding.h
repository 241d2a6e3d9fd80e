// Texts of files as UTF-8. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <tenon/reader.hpp>

namespace tenon::files {

// The encoding of text files: UTF-8, or Latin-1 (ISO 8859-1), whose bytes are the first 256 characters of Unicode.
class Encoding {
 public:
  // Declares the attribute encoding.
  static void describe(tn::ReaderDescription& d);
  explicit Encoding(bool latin1) : latin1_(latin1) {}
  explicit Encoding(const tn::Attributes& attributes) : latin1_(std::string(attributes.text("encoding")) == "latin1") {}

  // `text` in UTF-8, if its bytes are sound. room: memory for a converted text.
  std::string_view utf8(std::string_view text, std::string& room) const {
    return latin1_ ? converted(text, room) : text;
  }

 private:
  static std::string_view converted(std::string_view text, std::string& room);

  bool latin1_;
};

// What the message about a text that is not UTF-8 ends with: the setting that reads it.
inline constexpr const char* kOtherEncoding = "; encoding = \"latin1\" reads ISO 8859-1";

// The message about a name that is not UTF-8.
[[nodiscard]] std::string not_utf8(std::string_view name);

}  // namespace tenon::files
