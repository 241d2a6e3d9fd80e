// Cuts lines of text into words. SPDX-License-Identifier: Apache-2.0
#include "words.h"

#include <utf8proc.h>

#include <algorithm>
#include <tenon/base.hpp>
#include <vector>

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

// Calls each(word) for the words alone.
template <typename Each>
void for_each_single(std::string_view line, const WordRules& rules, std::string& room, const Each& each) {
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

}  // namespace

void for_each_word(std::string_view line, const WordRules& rules, std::string& room,
                   const std::function<void(std::string_view, bool gram)>& each) {
  std::string joined;  // the words so far
  std::vector<size_t> begins;
  for_each_single(line, rules, room, [&](std::string_view word) {
    each(word, false);
    if (rules.grams == 1) return;
    if (!begins.empty() && rules.split != Split::kCharacters) joined += ' ';
    begins.push_back(joined.size());
    joined += word;
    const auto most = std::min(static_cast<size_t>(rules.grams), begins.size());
    for (size_t n = 2; n <= most; ++n) each(std::string_view(joined).substr(begins[begins.size() - n]), true);
  });
}

int64_t bucket_of(std::string_view gram, int64_t buckets) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : gram) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<int64_t>(hash % static_cast<uint64_t>(buckets));
}

void check_numbers(int64_t words, int64_t buckets, const char* attribute) {
  if (words > INT32_MAX - buckets)
    throw tn::Failure(TN_INVALID, attribute,
                      std::to_string(buckets) + " buckets and " + std::to_string(words) +
                          " words are more numbers than an int32 has");
}

}  // namespace tenon::files
