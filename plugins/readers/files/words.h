// Cuts a line of UTF-8 into words. SPDX-License-Identifier: Apache-2.0
#pragma once

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
};

// Calls each(word) for the words of `line` in order. Throws BadLine if it is not UTF-8. room: memory for the word.
void for_each_word(std::string_view line, const WordRules& rules, std::string& room,
                   const std::function<void(std::string_view)>& each);

}  // namespace tenon::files
