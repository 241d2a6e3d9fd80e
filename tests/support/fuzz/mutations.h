// Damage for the fuzz tests of parsers: bytes, texts and JSON that are nearly those of a valid file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace tenon_tests {

// Numbers that follow from a seed alone, on every machine.
class Draw {
 public:
  explicit Draw(uint64_t seed) : seed_(seed), random_(seed) {}

  [[nodiscard]] uint64_t seed() const { return seed_; }

  // Less than count, which must not be 0.
  uint64_t below(uint64_t count) { return random_() % count; }
  bool once_in(uint64_t count) { return below(count) == 0; }
  template <typename List>
  const auto& one_of(const List& list) {
    return list[below(std::size(list))];
  }
  // A place in `text`, also its end.
  size_t place(const std::string& text) { return below(text.size() + 1); }
  // Mostly few, now and then many.
  size_t length() { return size_t{1} << below(once_in(8) ? 13 : 5); }

 private:
  const uint64_t seed_;
  std::mt19937_64 random_;
};

inline constexpr const char* kOddNumbers[] = {"-1",
                                              "0",
                                              "1",
                                              "2",
                                              "3",
                                              "-0.0",
                                              "0.5",
                                              "1e308",
                                              "-1e308",
                                              "1e400",
                                              "1e-320",
                                              "nan",
                                              "inf",
                                              "-inf",
                                              "255",
                                              "65535",
                                              "0x10",
                                              "007",
                                              "1_0",
                                              "1e2",
                                              "64",
                                              "1000000",
                                              "2147483647",
                                              "2147483648",
                                              "-2147483649",
                                              "4294967296",
                                              "1099511627776",
                                              "9223372036854775807",
                                              "9223372036854775808",
                                              "-9223372036854775808",
                                              "18446744073709551615",
                                              "18446744073709551616",
                                              "99999999999999999999999999"};
inline constexpr const char* kOddTexts[] = {"\xff",
                                            "\xc0\x80",
                                            "\xed\xa0\x80",
                                            "\xf4\x90\x80\x80",
                                            "\x01",
                                            "\x7f",
                                            "\n",
                                            "\r",
                                            "\t",
                                            "\\u0000",
                                            "\\",
                                            "\"",
                                            "'",
                                            "[",
                                            "]",
                                            "{",
                                            "}",
                                            ",",
                                            ":",
                                            "=",
                                            ".",
                                            "/",
                                            "#",
                                            "*",
                                            "%s",
                                            "\xef\xbb\xbf",
                                            "\xe2\x80\xae",
                                            "\xc3\xa9",
                                            "\"\"\"",
                                            "null",
                                            "true",
                                            "\\ud800"};

// Returns the span of letters, or of digits with their sign, point and exponent, around a random place; of no bytes if
// there is none.
inline std::pair<size_t, size_t> drawn_word(Draw& draw, const std::string& text, bool number) {
  const auto belongs = [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return number ? std::isdigit(byte) != 0 || c == '.' || c == '-' : std::isalpha(byte) != 0 || c == '_';
  };
  const size_t from = draw.place(text);
  for (size_t at = 0; at < text.size(); ++at) {
    size_t begin = (from + at) % text.size(), end = begin;
    if (!belongs(text[begin])) continue;
    while (begin > 0 && belongs(text[begin - 1])) --begin;
    while (end < text.size() && belongs(text[end])) ++end;
    return {begin, end - begin};
  }
  return {0, 0};
}

// A few changes of bytes: flips, odd values, spans inserted, taken out, repeated or replaced by those of another file.
inline std::string mutated_bytes(Draw& draw, std::string bytes, const std::string& other) {
  for (size_t changes = 1 + draw.below(3); changes > 0; --changes) {
    const size_t at = draw.place(bytes), left = bytes.size() - at, length = std::min(left, draw.length());
    switch (draw.below(9)) {
      case 0:
        if (left > 0) bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw.below(8)));
        break;
      case 1:
        if (left > 0) bytes[at] = static_cast<char>(draw.below(256));
        break;
      case 2: {  // an integer of 1 to 8 bytes, in either byte order
        const uint64_t shift = draw.below(64), value = draw.once_in(2) ? UINT64_MAX >> shift : uint64_t{1} << shift;
        const size_t size = std::min(left, size_t{1} << draw.below(4));
        const bool little = draw.once_in(2);
        for (size_t i = 0; i < size; ++i) bytes[at + (little ? i : size - 1 - i)] = static_cast<char>(value >> (8 * i));
        break;
      }
      case 3:
        bytes.insert(at, draw.length(), static_cast<char>(draw.below(256)));
        break;
      case 4:
        bytes.erase(at, length);
        break;
      case 5:
        bytes.insert(at, bytes.substr(draw.place(bytes), draw.length()));
        break;
      case 6:
        bytes.replace(at, length, other.substr(draw.place(other), draw.length()));
        break;
      case 7:
        if (draw.once_in(3)) bytes = bytes.substr(0, at) + other.substr(draw.place(other));
        break;
      default:
        if (draw.once_in(3)) bytes.resize(at);
    }
  }
  return bytes;
}

// A few changes of a text of any format: numbers, words, lines, brackets, encodings, nesting, and those of bytes.
inline std::string mutated_text(Draw& draw, std::string text, const std::string& other) {
  for (size_t changes = 1 + draw.below(3); changes > 0; --changes) {
    const auto lines = [&](size_t from) { return std::min(text.find('\n', from), text.size() - 1) + 1; };
    switch (draw.below(9)) {
      case 0:
      case 1: {
        const auto [begin, length] = drawn_word(draw, text, true);
        text.replace(begin, length, draw.one_of(kOddNumbers));
        break;
      }
      case 2: {
        const std::string& source = draw.once_in(3) ? other : text;
        const auto [from, size] = drawn_word(draw, source, false);
        const std::string word = source.substr(from, size);
        const auto [begin, length] = drawn_word(draw, text, false);
        text.replace(begin, length, word);
        break;
      }
      case 3:
        text.insert(draw.place(text), draw.one_of(kOddTexts));
        break;
      case 4: {  // a line goes, or comes again elsewhere
        if (text.empty()) break;
        const size_t begin = lines(draw.below(text.size())) % text.size(), end = lines(begin);
        const std::string line = text.substr(begin, end - begin);
        if (draw.once_in(2)) text.erase(begin, line.size());
        if (draw.once_in(2)) text.insert(text.empty() ? 0 : lines(draw.below(text.size())), line);
        break;
      }
      case 5: {  // one sign goes
        const size_t at = text.find_first_of("[]{}()\"',:=.", draw.place(text));
        if (at != std::string::npos) text.erase(at, 1);
        break;
      }
      case 6: {
        const char* const nests[] = {"[", "{", "(", "[[", "{\"a\":", "[1,", "a.", "{a=", "\"", "-"};
        std::string nest;
        const char* const one = draw.one_of(nests);
        for (size_t levels = size_t{1} << draw.below(draw.once_in(20) ? 18 : 9); levels > 0; --levels) nest += one;
        text.insert(drawn_word(draw, text, draw.once_in(2)).first, nest);
        break;
      }
      default:
        text = mutated_bytes(draw, text, other);
    }
  }
  return text;
}

// Counts the values of a JSON tree, the root included.
inline size_t json_values(const nlohmann::json& tree) {
  size_t count = 1;
  if (tree.is_structured())
    for (const nlohmann::json& value : tree) count += json_values(value);
  return count;
}
// Returns value `number` of a tree in the order of the text, and counts `number` down by those before.
inline nlohmann::json* json_value(nlohmann::json& tree, size_t& number) {
  if (number == 0) return &tree;
  --number;
  if (tree.is_structured())
    for (nlohmann::json& value : tree)
      if (nlohmann::json* const result = json_value(value, number)) return result;
  return nullptr;
}
inline nlohmann::json& drawn_value(Draw& draw, nlohmann::json& tree) {
  size_t number = draw.below(json_values(tree));
  return *json_value(tree, number);
}

// A scalar that is near `before`, or far from everything.
inline nlohmann::json odd_value(Draw& draw, const nlohmann::json& before) {
  if (before.is_number_integer() && draw.once_in(2))
    return before.get<int64_t>() / 2 + static_cast<int64_t>(draw.below(3)) - 1;
  if (before.is_boolean() && draw.once_in(2)) return !before.get<bool>();
  switch (draw.below(8)) {
    case 0:
      return nullptr;
    case 1:
      return draw.once_in(2);
    case 2:
      return std::string(draw.one_of(kOddTexts));
    case 3:
      return nlohmann::json::array();
    case 4:
      return nlohmann::json::object();
    default: {
      const nlohmann::json number = nlohmann::json::parse(draw.one_of(kOddNumbers), nullptr, false);
      return number.is_number() ? number : nlohmann::json(-1);
    }
  }
}

// Changes of the values of a JSON text, which stays JSON: odd values, values of elsewhere, keys and entries that go,
// come twice, or change their names.
inline void mutate_json(Draw& draw, nlohmann::json& tree) {
  for (size_t changes = 1 + draw.below(3); changes > 0; --changes) {
    nlohmann::json& value = drawn_value(draw, tree);
    if (value.is_object() && !value.empty() && draw.once_in(2)) {
      auto at = value.begin();
      std::advance(at, static_cast<ptrdiff_t>(draw.below(value.size())));
      const std::string key = at.key();
      if (draw.once_in(2)) value[draw.once_in(2) ? key + "2" : draw.one_of(kOddTexts)] = at.value();
      if (draw.once_in(2)) value.erase(key);
      continue;
    }
    if (value.is_array() && !value.empty() && draw.once_in(2)) {
      const size_t at = draw.below(value.size());
      if (draw.once_in(3))
        std::swap(value[at], value[draw.below(value.size())]);
      else if (draw.once_in(2))
        value.push_back(value[at]);
      else
        value.erase(at);
      continue;
    }
    value = draw.once_in(3) ? nlohmann::json(drawn_value(draw, tree)) : odd_value(draw, value);
  }
}
inline std::string json_text(const nlohmann::json& tree) {
  return tree.dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore);
}

}  // namespace tenon_tests
