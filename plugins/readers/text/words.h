// Cuts a line of UTF-8 into words. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tenon::text {

// What is wrong with a line, without its place.
struct BadLine {
  std::string why;
};

struct WordRules {
  bool lower_case = false;
  // Letters, digits and marks that touch are a word, with apostrophes between them; every other character that is no
  // space is a word of its own. False: words are what lies between spaces.
  bool split_signs = false;
};

// Calls each(word) for the words of `line` in order; throws BadLine where it is no UTF-8. `room` holds changed words.
void for_each_word(std::string_view line, const WordRules& rules, std::string& room,
                   const std::function<void(std::string_view)>& each);

}  // namespace tenon::text
