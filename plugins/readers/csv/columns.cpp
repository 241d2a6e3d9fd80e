// Parses the attribute "columns". SPDX-License-Identifier: Apache-2.0
#include "columns.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "file.h"

namespace tenon::csv {

namespace {

struct NamedType {
  const char* name;
  Kind kind;
  tn_dtype dtype;
};
constexpr NamedType kTypes[] = {
    {"f32", Kind::kFloat, TN_F32},   {"f64", Kind::kFloat, TN_F64},   {"i8", Kind::kInteger, TN_I8},
    {"i16", Kind::kInteger, TN_I16}, {"i32", Kind::kInteger, TN_I32}, {"i64", Kind::kInteger, TN_I64},
    {"u8", Kind::kInteger, TN_U8},   {"u16", Kind::kInteger, TN_U16}, {"u32", Kind::kInteger, TN_U32}};

using Numbers = std::unordered_map<std::string_view, size_t>;  // numbers of columns by name

// Parses one entry of the attribute.
class Entry {
 public:
  Entry(const std::string& text, const std::vector<std::string>& names, const Numbers& numbers)
      : text_(text), names_(names), numbers_(numbers) {}

  // *rest: set to true if the entry has a "*".
  SlotColumns parse(bool* rest) {
    SlotColumns slot;
    std::string first = name();
    if (accept("=")) {
      slot.name = first;
      first = name();
    }
    const bool single = add(first, slot, rest) && slot.columns.size() == 1;
    bool more = false;
    while (accept(",")) {
      more = true;
      add(name(), slot, rest);
    }
    slot.is_vector = more || !single;
    if (slot.name.empty()) {
      if (slot.is_vector) fail("a slot of several columns needs a name: \"x = " + text_ + "\"");
      slot.name = first;
    }
    if (accept(":")) slot.type = type();
    if (at_ != text_.size()) fail("cannot make sense of \"" + text_.substr(at_) + "\"");
    return slot;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw tn::Failure(TN_INVALID, "columns", "\"" + text_ + "\": " + why);
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(const char* token) {
    skip_spaces();
    if (text_.compare(at_, std::strlen(token), token) != 0) return false;
    at_ += std::strlen(token);
    return true;
  }
  // The next name, or "" for "*".
  std::string name() {
    if (accept("*")) return "";
    skip_spaces();
    std::string result;
    if (accept("\"")) {
      const size_t end = text_.find('"', at_);
      if (end == std::string::npos) fail("a quoted name has no end");
      result = text_.substr(at_, end - at_);
      at_ = end + 1;
    } else {
      while (at_ < text_.size() && std::strchr(",:=*\"", text_[at_]) == nullptr && text_.compare(at_, 2, "..") != 0)
        result += text_[at_++];
      result.erase(result.find_last_not_of(' ') + 1);
    }
    if (result.empty()) fail("expected the name of a column");
    return result;
  }
  [[nodiscard]] size_t number(const std::string& column) const {
    const auto at = numbers_.find(column);
    if (at != numbers_.end()) return at->second;
    fail("unknown column " + files::quoted(column) + "; known: " + files::listed(names_));
  }
  // Adds a column, or the range that begins with it. Returns true for a single column.
  bool add(const std::string& column, SlotColumns& slot, bool* rest) {
    if (column.empty()) {
      *rest = true;
      return false;
    }
    const size_t first = number(column);
    const bool range = accept("..");
    const size_t last = range ? number(name()) : first;
    if (last < first) fail("the range ends before it begins");
    for (size_t i = first; i <= last; ++i) slot.columns.push_back(i);
    return !range;
  }
  Type type() {
    skip_spaces();
    Type result;
    if (accept("category")) {
      result.kind = Kind::kCategory;
      result.dtype = TN_I32;
      if (accept("(")) {
        const size_t end = text_.rfind(')');
        if (end == std::string::npos || end <= at_) fail("expected category(FILE)");
        result.vocabulary = text_.substr(at_, end - at_);
        at_ = end + 1;
      }
      return result;
    }
    std::string word;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_])) != 0) word += text_[at_++];
    const auto* const named =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NamedType& t) { return word == t.name; });
    if (named == std::end(kTypes))
      fail("unknown type \"" + word + "\"; known: f32, f64, i8, i16, i32, i64, u8, u16, u32, category");
    result.kind = named->kind;
    result.dtype = named->dtype;
    if (accept("<")) {
      skip_spaces();
      const char* const end = text_.data() + text_.size();
      const auto [stop, error] = std::from_chars(text_.data() + at_, end, result.limit);
      if (error != std::errc() || result.limit < 1 || result.kind != Kind::kInteger)
        fail("expected a whole number of at least 1 after \"<\", and an integer type before it");
      at_ = static_cast<size_t>(stop - text_.data());
    }
    skip_spaces();
    return result;
  }

  const std::string& text_;
  const std::vector<std::string>& names_;
  const Numbers& numbers_;
  size_t at_ = 0;
};

// Refuses more than 4096 slots, the limit of hosts, which would report a faulty plugin.
void check_number(const std::vector<std::string>& entries, const std::vector<std::string>& names) {
  constexpr size_t kMost = 4096;
  const std::string most = std::to_string(kMost);
  if (entries.size() > kMost)
    throw tn::Failure(TN_INVALID, "columns",
                      "makes " + std::to_string(entries.size()) + " slots; expected at most " + most);
  if (entries.empty() && names.size() > kMost)
    throw tn::Failure(TN_INVALID, "columns",
                      "the files have " + std::to_string(names.size()) +
                          " columns; without this attribute each is a slot, and a reader has at most " + most +
                          ": put many columns into one slot, such as \"x = *: f32\", or name those to read");
}

}  // namespace

std::vector<SlotColumns> slot_columns(const std::vector<std::string>& entries, const std::vector<std::string>& names,
                                      const volatile int32_t* cancel) {
  check_number(entries, names);
  std::vector<SlotColumns> slots;
  std::vector<uint8_t> used(names.size());
  Numbers numbers;
  for (size_t column = 0; column < names.size() && !entries.empty(); ++column) numbers.emplace(names[column], column);
  std::unordered_set<std::string> slot_names;
  std::vector<size_t> rest_columns;
  size_t rest_slot = entries.size();
  for (const std::string& entry : entries) {
    files::check_cancel(cancel, "columns");
    bool rest = false;
    slots.push_back(Entry(entry, names, numbers).parse(&rest));
    if (rest && rest_slot != entries.size()) throw tn::Failure(TN_INVALID, "columns", "duplicate \"*\"");
    if (rest) rest_slot = slots.size() - 1;
    for (const size_t column : slots.back().columns)
      if (used[column]++ != 0)
        throw tn::Failure(TN_INVALID, "columns", "duplicate column " + files::quoted(names[column]));
    if (!slot_names.insert(slots.back().name).second)
      throw tn::Failure(TN_INVALID, "columns", "two slots are named \"" + slots.back().name + "\"");
  }
  for (size_t column = 0; column < names.size(); ++column) {
    if (entries.empty()) slots.push_back({names[column], {column}, false, {}});
    if (rest_slot < entries.size() && used[column] == 0) rest_columns.push_back(column);
  }
  if (!rest_columns.empty()) {
    std::vector<size_t>& columns = slots[rest_slot].columns;
    columns.insert(columns.begin(), rest_columns.begin(), rest_columns.end());
  }
  for (const SlotColumns& slot : slots) {
    if (slot.columns.empty()) throw tn::Failure(TN_INVALID, "columns", "no column is left for \"" + slot.name + "\"");
    if (slot.is_vector && slot.type.kind == Kind::kCategory)
      throw tn::Failure(TN_INVALID, "columns", "the category \"" + slot.name + "\" must be one column");
  }
  return slots;
}

}  // namespace tenon::csv
