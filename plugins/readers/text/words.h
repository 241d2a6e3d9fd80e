// Cuts a line of UTF-8 into words. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tenon::text {

// Thrown for a faulty line. The catcher adds file and line.
struct BadLine {
  std::string why;
};

struct WordRules {
  bool lower_case = false;
  // True: a word is a run of letters, digits and marks, with apostrophes inside it, and every other character except
  // spaces is a word of its own. False: words are separated by spaces alone.
  bool split_signs = false;
};

// Calls each(word) for the words of `line` in order. Throws BadLine if it is not UTF-8. room: memory for the word.
void for_each_word(std::string_view line, const WordRules& rules, std::string& room,
                   const std::function<void(std::string_view)>& each);

}  // namespace tenon::text
