// SPDX-License-Identifier: Apache-2.0
#include "launch/texts.h"

#include <algorithm>

namespace tenon::launch {

std::string digits_of(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string result;
  for (const char byte : bytes) {
    result += kDigits[static_cast<unsigned char>(byte) >> 4];
    result += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return result;
}

std::string bytes_of(const std::string& digits) {
  const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  const size_t end = digits.find_first_not_of("0123456789abcdef");
  std::string result;
  for (size_t i = 0; i + 1 < std::min(end, digits.size()); i += 2)
    result += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
  return result;
}

std::string process_name(int64_t rank, const std::string& node) {
  return "process " + std::to_string(rank) + (node.empty() ? "" : " on " + node);
}

std::string counted(int64_t number, const std::string& one, const std::string& several) {
  return std::to_string(number) + " " + (number == 1 ? one : several);
}

}  // namespace tenon::launch
