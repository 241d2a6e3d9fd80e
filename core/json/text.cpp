// The functions of json.hpp that are compiled once. SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <utility>

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the library's names are "i" and "cb"
template <>
template <>
nlohmann::json nlohmann::json::parse(const std::string& text, parser_callback_t each, const bool throws,
                                     const bool comments) {
  json result;
  parser(detail::input_adapter(text), std::move(each), throws, comments).parse(true, result);
  return result;
}

template <>
template <>
nlohmann::json nlohmann::json::parse(std::string& text, parser_callback_t each, const bool throws,
                                     const bool comments) {
  return parse(std::as_const(text), std::move(each), throws, comments);
}

template <>
template <>
nlohmann::json nlohmann::json::parse(std::string&& text, parser_callback_t each, const bool throws,
                                     const bool comments) {
  return parse(std::as_const(text), std::move(each), throws, comments);
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

template <>
std::string nlohmann::json::dump(const int indent, const char indent_char, const bool ascii,
                                 const error_handler_t handler) const {
  std::string result;
  serializer writer(detail::output_adapter<char, std::string>(result), indent_char, handler);
  writer.dump(*this, indent >= 0, ascii, indent >= 0 ? static_cast<unsigned>(indent) : 0);
  return result;
}
