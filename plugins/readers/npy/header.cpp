// Parses the headers of .npy files. SPDX-License-Identifier: Apache-2.0
#include "header.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <tenon/base.hpp>

#include "file.h"

namespace tenon::npy {

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 16;  // most bytes of a header; real ones have about a hundred
constexpr std::string_view kMagic = "\x93NUMPY";

struct NamedType {
  const char* name;  // without the byte order
  tn_dtype dtype;
};
constexpr NamedType kTypes[] = {{"b1", TN_BOOL}, {"i1", TN_I8},  {"i2", TN_I16}, {"i4", TN_I32},
                                {"i8", TN_I64},  {"u1", TN_U8},  {"u2", TN_U16}, {"u4", TN_U32},
                                {"f2", TN_F16},  {"f4", TN_F32}, {"f8", TN_F64}};

size_t prefix_bytes(std::string_view prefix) { return prefix[6] == 1 ? 10 : 12; }

// Parses a header, the literal of a Python dictionary. Refuses everything but its three keys.
class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Header parse() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !descr_++)
        type();
      else if (key == "fortran_order" && !order_++)
        order();
      else if (key == "shape" && !shape_++)
        shape();
      else
        fail("unknown or duplicate key " + files::quoted(key));
      if (!accept(',') && (skip_spaces(), at_ == text_.size() || text_[at_] != '}')) fail("expected a comma");
    }
    skip_spaces();
    if (at_ != text_.size()) fail("there is text after the dictionary");
    if (descr_ + order_ + shape_ != 3) fail("one of the keys descr, fortran_order and shape is missing");
    header_.fortran = fortran_ && header_.shape.size() > 1;
    return header_;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw tn::Failure(TN_BAD_DATA, path_, "damaged header: " + why + ", at byte " + std::to_string(at_));
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected ") + c);
  }
  std::string_view string() {
    skip_spaces();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("expected a text in quotes");
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) fail("a text has no end");
    const std::string_view result = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return result;
  }
  void type() {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '[')
      throw tn::Failure(TN_UNSUPPORTED, path_, "holds records of several fields; save each field as an array");
    const std::string_view text = string();
    const bool ordered = !text.empty() && (text[0] == '<' || text[0] == '>' || text[0] == '=' || text[0] == '|');
    const std::string_view name = text.substr(ordered ? 1 : 0);
    const auto* const named =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NamedType& t) { return name == t.name; });
    if (named == std::end(kTypes))
      throw tn::Failure(
          TN_UNSUPPORTED, path_,
          "has elements of type " + files::quoted(text) + "; known: b1, i1, i2, i4, i8, u1, u2, u4, f2, f4, f8");
    header_.dtype = named->dtype;
    constexpr char kOther = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<';
    header_.swapped = ordered && text[0] == kOther && tn_dtype_bytes(named->dtype) > 1;
  }
  void order() {
    skip_spaces();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      fortran_ = value;
      return;
    }
    fail("expected True or False");
  }
  void shape() {
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail("expected a comma");
      skip_spaces();
      int64_t dim = 0;
      const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) fail("expected a whole number of at least 0");
      at_ = static_cast<size_t>(stop - text_.data());
      header_.shape.push_back(dim);
      if (header_.shape.size() > TN_MAX_RANK)
        throw tn::Failure(TN_UNSUPPORTED, path_, "has more than " + std::to_string(TN_MAX_RANK) + " dimensions");
      comma = accept(',');
    }
    if (header_.shape.size() == 1 && !comma) fail("a number in parentheses is not a shape");
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
  int descr_ = 0, order_ = 0, shape_ = 0;  // occurrences of each key
  bool fortran_ = false;
  Header header_;
};

}  // namespace

uint64_t values_offset(std::string_view prefix, const std::string& path) {
  if (prefix.size() < kMagic.size() + 2 || prefix.substr(0, kMagic.size()) != kMagic)
    throw tn::Failure(TN_BAD_DATA, path, "not a .npy file: it does not begin with \\x93NUMPY and a version");
  if (prefix[6] < 1 || prefix[6] > 3)
    throw tn::Failure(
        TN_UNSUPPORTED, path,
        "unknown version " + std::to_string(static_cast<unsigned char>(prefix[6])) + " of the format; known: 1 to 3");
  const size_t size = prefix_bytes(prefix);
  uint64_t bytes = 0;
  if (prefix.size() >= size)
    for (size_t i = size; i-- > 8;) bytes = bytes << 8 | static_cast<unsigned char>(prefix[i]);
  if (prefix.size() < size || bytes > kMostBytes)
    throw tn::Failure(TN_BAD_DATA, path,
                      prefix.size() < size ? "ends within its header"
                                           : "says that its header has " + std::to_string(bytes) + " bytes; at most " +
                                                 std::to_string(kMostBytes) + " are read");
  return size + bytes;
}

Header parse_header(std::string_view bytes, const std::string& path) {
  return Parser(bytes.substr(prefix_bytes(bytes)), path).parse();
}

}  // namespace tenon::npy
