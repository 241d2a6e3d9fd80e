// Cuts a line of UTF-8 into words. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tenon::files {

// Thrown for a faulty line. The catcher adds file and line.
struct BadLine {
  std::string why;
};

enum class Split {
  kSpaces,     // words are separated by spaces alone
  kWords,      // a run of letters, digits and marks, with apostrophes inside it, and every other character but spaces
  kCharacters  // every character, spaces included
};

struct WordRules {
  bool lower_case = false;
  Split split = Split::kSpaces;
  int64_t grams = 1;    // the longest n-grams, in words
  int64_t buckets = 0;  // so many numbers, behind those of the vocabulary, are of n-grams, by hash; 0: it has n-grams
};

// Calls each(word, false) for the words of `line` in order, and after each of them each(gram, true) for the n-grams of
// two and more words that end with it, from short to long: words with a space between them, or characters without one.
// Throws BadLine if the line is not UTF-8. room: memory for the word.
void for_each_word(std::string_view line, const WordRules& rules, std::string& room,
                   const std::function<void(std::string_view, bool gram)>& each);

// The number of an n-gram among `buckets`, from 0: FNV-1a of 64 bits, modulo their number.
[[nodiscard]] int64_t bucket_of(std::string_view gram, int64_t buckets);
// Throws TN_INVALID on `attribute` if a vocabulary of `words` entries and the buckets have more numbers than an int32.
void check_numbers(int64_t words, int64_t buckets, const char* attribute);

}  // namespace tenon::files
