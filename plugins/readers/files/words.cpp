// Cuts lines of text into words. SPDX-License-Identifier: Apache-2.0
#include "words.h"

#include <utf8proc.h>

#include "encoding.h"

namespace tenon::files {

namespace {

struct Character {
  utf8proc_int32_t code = 0;
  size_t bytes = 0;
};

Character character_at(std::string_view line, size_t at) {
  Character result;
  const auto first = static_cast<unsigned char>(line[at]);
  if (first < 0x80) return {first, 1};
  const auto* const from = reinterpret_cast<const utf8proc_uint8_t*>(line.data()) + at;
  const utf8proc_ssize_t bytes = utf8proc_iterate(from, static_cast<utf8proc_ssize_t>(line.size() - at), &result.code);
  if (bytes <= 0) throw BadLine{"byte " + std::to_string(at + 1) + " is not valid UTF-8" + kOtherEncoding};
  result.bytes = static_cast<size_t>(bytes);
  return result;
}

bool is_space(utf8proc_int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return (code >= '\t' && code <= '\r') || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

// Letters, marks and numbers.
bool is_word_part(utf8proc_int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO;
}

bool is_apostrophe(utf8proc_int32_t code) { return code == '\'' || code == 0x2019; }

void append(std::string& word, utf8proc_int32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t count = utf8proc_encode_char(code, bytes);
  word.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

}  // namespace

void for_each_word(std::string_view line, const WordRules& rules, std::string& room,
                   const std::function<void(std::string_view)>& each) {
  room.clear();
  const auto finish = [&] {
    if (!room.empty()) each(room);
    room.clear();
  };
  const bool signs = rules.split == Split::kWords;
  bool touches_part = false;  // whether the last character is part of the word in `room`
  for (size_t at = 0; at < line.size();) {
    const Character now = character_at(line, at);
    at += now.bytes;
    const bool space = rules.split != Split::kCharacters && is_space(now.code);
    const bool part = !space && rules.split != Split::kCharacters && (!signs || is_word_part(now.code));
    const bool joins = signs && touches_part && is_apostrophe(now.code) && at < line.size() &&
                       is_word_part(character_at(line, at).code);
    if (!part && !joins) finish();
    if (!space) append(room, rules.lower_case ? utf8proc_tolower(now.code) : now.code);
    touches_part = part || joins;
    if (!space && !part && !joins) finish();
  }
  finish();
}

}  // namespace tenon::files
