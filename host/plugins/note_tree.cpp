// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/note_tree.h"

#include <tenon/plugin.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory_resource>
#include <nlohmann/json.hpp>
#include <set>

#include "base/utf8.h"
#include "core/error.h"

namespace tenon::host {

using core::fail;
using core::text;
using nlohmann::json;

namespace {

constexpr size_t kDeepest = 16;  // the manifest itself needs 6

constexpr auto kPlain = [] {  // bytes that stand for themselves in a text
  std::array<bool, 256> result = {};
  for (size_t byte = 0x20; byte < 0x80; ++byte) result[byte] = byte != '"' && byte != '\\';
  return result;
}();

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// Reads a text that ends with a NUL, as every std::string does; a NUL before its end ends it, too. Refuses what
// nlohmann's parser refuses, which finds the words for what is wrong, and reads what is not plain: numbers with a
// fraction, texts with escapes.
class NoteParser {
 public:
  NoteParser(const std::string& note, NoteTree& tree)
      : note_(note), at_(note.c_str()), values_(tree.values_), texts_(tree.texts_) {
    if (note.size() > TN_NOTE_LIMIT)
      fail(TN_REFUSED, "its note has ", note.size(), " bytes; at most ", TN_NOTE_LIMIT, " are allowed");
    texts_.reserve(note.size());
    values_.reserve(note.size() / 16);  // notes that tenon_add_plugin writes have one in about 20 bytes
    frames_.reserve(kDeepest);
    if (note.starts_with("\xEF\xBB\xBF")) at_ += 3;
    value(0, {});
    if (*blank() != '\0') malformed();
  }

 private:
  using Kind = NoteTree::Kind;
  // A list or object that is being read.
  struct Frame {
    bool list;
    size_t index;
    std::string_view key;
    std::pmr::set<std::string_view> keys;
  };

  // Skips blanks.
  const char* blank() {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r') ++at_;
    return at_;
  }

  // Goes past `expected` and blanks before it; false if there is another character.
  bool take(char expected) {
    if (*blank() != expected) return false;
    ++at_;
    return true;
  }

  void value(uint32_t parent, std::string_view key) {
    const auto self = static_cast<uint32_t>(values_.size());
    values_.push_back({Kind::kNull, parent, 0, key, {}, 0, 0});
    switch (*blank()) {
      case '{':
        object(self);
        break;
      case '[':
        list(self);
        break;
      case '"':
        values_[self].kind = Kind::kText;
        values_[self].text = string();
        break;
      case 't':
        word("true");
        values_[self].kind = Kind::kBool;
        values_[self].integer = 1;
        break;
      case 'f':
        word("false");
        values_[self].kind = Kind::kBool;
        break;
      case 'n':
        word("null");
        break;
      default:
        number(values_[self]);
    }
    values_[self].end = static_cast<uint32_t>(values_.size());
    if (!frames_.empty()) ++frames_.back().index;
  }

  void object(uint32_t self) {
    values_[self].kind = Kind::kObject;
    open(false);
    if (*blank() != '}') do
        member(self);
      while (take(','));
    close('}');
  }

  void member(uint32_t object) {
    if (*blank() != '"') malformed();
    Frame& frame = frames_.back();
    frame.key = string();
    if (!frame.keys.insert(frame.key).second) refuse_note(path(), "duplicate key");
    if (!take(':')) malformed();
    value(object, frame.key);
  }

  void list(uint32_t self) {
    values_[self].kind = Kind::kList;
    open(true);
    if (*blank() != ']') do
        value(self, {});
      while (take(','));
    close(']');
  }

  void open(bool list) {
    if (frames_.size() == kDeepest) refuse_note(path(), text("nested deeper than ", kDeepest));
    frames_.push_back({list, 0, {}, std::pmr::set<std::string_view>(&memory_)});
    ++at_;
  }

  void close(char bracket) {
    if (!take(bracket)) malformed();
    frames_.pop_back();
  }

  void word(std::string_view expected) {
    for (const char c : expected)
      if (*at_++ != c) malformed();
  }

  void number(NoteTree::Value& to) {
    const char* const begin = at_;
    if (*at_ == '-') ++at_;
    if (*at_ == '0')
      ++at_;
    else
      digits();
    bool whole = true;
    if (*at_ == '.') {
      ++at_;
      digits();
      whole = false;
    }
    if (*at_ == 'e' || *at_ == 'E') {
      ++at_;
      if (*at_ == '+' || *at_ == '-') ++at_;
      digits();
      whole = false;
    }
    constexpr ptrdiff_t kShort = 18;  // digits that always fit into an int64_t
    if (whole && at_ - begin <= kShort) {
      to.kind = Kind::kInteger;
      std::from_chars(begin, at_, to.integer);
      to.number = static_cast<double>(to.integer);
    } else {
      convert(begin, to);
    }
  }

  void digits() {
    if (!is_digit(*at_)) malformed();
    while (is_digit(*at_)) ++at_;
  }

  // Integers beyond int64_t but not uint64_t are unsigned, those beyond both are floats; a float beyond double is
  // refused.
  void convert(const char* begin, NoteTree::Value& to) const {
    const json number = json::parse(begin, at_, nullptr, false);
    if (number.is_discarded()) malformed();
    to.number = number.get<double>();
    if (number.is_number_float()) {
      to.kind = Kind::kFloat;
      return;
    }
    to.integer = number.get<int64_t>();
    to.kind = number.is_number_unsigned() && to.integer < 0 ? Kind::kUnsigned : Kind::kInteger;
  }

  // Returns the text behind a quotation mark.
  std::string_view string() {
    const size_t begin = texts_.size();
    for (++at_;; decode()) {
      const char* const run = at_;
      while (kPlain[static_cast<unsigned char>(*at_)]) ++at_;
      texts_.insert(texts_.end(), run, at_);
      if (*at_ == '"') break;
    }
    ++at_;
    return {texts_.data() + begin, texts_.size() - begin};
  }

  // Appends characters that are escaped or have several bytes, up to the next that is neither.
  void decode() {
    constexpr int kEscape = 2, kUnicodeEscape = 6;  // characters
    std::string token = "\"";
    while (*at_ == '\\' || static_cast<unsigned char>(*at_) >= 0x80)
      for (int left = *at_ != '\\' ? 1 : at_[1] == 'u' ? kUnicodeEscape : kEscape; left > 0 && *at_ != '\0'; --left)
        token += *at_++;
    const json text = token.size() > 1 ? json::parse(token + "\"", nullptr, false) : json();
    if (!text.is_string()) malformed();
    const auto& decoded = text.get_ref<const std::string&>();
    texts_.insert(texts_.end(), decoded.begin(), decoded.end());
  }

  // Returns the place that was read last.
  [[nodiscard]] std::string path() const {
    std::string result = "$";
    for (const Frame& frame : frames_) {
      if (frame.list)
        result += text("[", frame.index, "]");
      else if (!frame.key.empty())
        result += "." + std::string(frame.key);
    }
    return result;
  }

  [[noreturn]] void malformed() const {
    try {
      fail(TN_INTERNAL, "its note at ", path(), ": one of two parsers refuses the ", json::parse(note_).type_name());
    } catch (const json::exception& error) {
      const std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line 1 ..."
      const size_t prefix = what.find("] ");
      refuse_note(path(), prefix == std::string::npos ? what : what.substr(prefix + 2));
    }
  }

  const std::string& note_;
  const char* at_;
  std::vector<NoteTree::Value>& values_;
  std::vector<char>& texts_;
  std::pmr::monotonic_buffer_resource memory_;  // of the sets of keys
  std::vector<Frame> frames_;
};

NoteTree::NoteTree(const std::string& note) { NoteParser(note, *this); }

const NoteTree::Value* NoteTree::find(const Value& object, std::string_view key) const {
  for (uint32_t at = index(object) + 1; at < object.end; at = values_[at].end)
    if (values_[at].key == key) return &values_[at];
  return nullptr;
}

std::string NoteTree::path(const Value& value) const {
  if (&value == &root()) return "$";
  const Value& parent = values_[value.parent];
  if (parent.kind == Kind::kObject) return path(parent) + "." + std::string(value.key);
  size_t before = 0;
  each(parent, [&](const Value& entry) { before += &entry < &value ? 1 : 0; });
  return text(path(parent), "[", before, "]");
}

json NoteTree::json(const Value& value) const {
  nlohmann::json result;
  switch (value.kind) {
    case Kind::kNull:
      break;
    case Kind::kBool:
      result = value.integer != 0;
      break;
    case Kind::kInteger:
      result = value.integer;
      break;
    case Kind::kUnsigned:
      result = static_cast<uint64_t>(value.integer);
      break;
    case Kind::kFloat:
      result = value.number;
      break;
    case Kind::kText:
      result = value.text;
      break;
    case Kind::kList:
      result = nlohmann::json::array();
      each(value, [&](const Value& entry) { result.push_back(json(entry)); });
      break;
    case Kind::kObject:
      result = nlohmann::json::object();
      each(value, [&](const Value& entry) { result[std::string(entry.key)] = json(entry); });
      break;
  }
  return result;
}

const char* type_name(NoteTree::Kind kind) {
  constexpr std::array<const char*, 8> kNames = {"null",   "boolean", "number", "number",
                                                 "number", "string",  "array",  "object"};
  return kNames[static_cast<size_t>(kind)];
}

void refuse_note(const std::string& path, const std::string& reason) {
  fail(TN_REFUSED, "its note at ", path, ": ", base::readable_utf8(reason));
}

}  // namespace tenon::host
