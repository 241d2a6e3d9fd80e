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

#include "elements.h"
#include "file.h"
#include "number.h"

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

// A column, a range of columns, or "*".
struct Item {
  std::string first, last;  // last: of a range; first "": "*"
};

// Parses one entry of the attribute, and finds its columns.
class Entry {
 public:
  explicit Entry(const std::string& text) : text_(text) {
    std::string first = name();
    if (accept("=")) {
      slot_.name = first;
      first = name();
    }
    add(first);
    while (accept(",")) add(name());
    slot_.is_vector = items_.size() > 1 || !items_[0].last.empty() || has_rest();
    if (slot_.name.empty()) {
      if (slot_.is_vector) fail("a slot of several columns needs a name: \"x = " + text_ + "\"");
      slot_.name = first;
    }
    if (accept(":")) {
      slot_.type = type();
      options();
      check();
    }
    if (at_ != text_.size()) fail("cannot make sense of \"" + text_.substr(at_) + "\"");
  }

  [[nodiscard]] const std::string& slot() const { return slot_.name; }
  [[nodiscard]] bool multi_hot() const { return slot_.type.multi_hot; }
  [[nodiscard]] bool has_rest() const {
    return std::any_of(items_.begin(), items_.end(), [](const Item& item) { return item.first.empty(); });
  }

  // Finds the columns in the order of the file. Those of "*" are added later.
  SlotColumns by_file(const std::vector<std::string>& names, const Numbers& numbers) {
    for (const Item& item : items_) {
      if (item.first.empty()) continue;
      const size_t first = number(item.first, names, numbers);
      const size_t last = item.last.empty() ? first : number(item.last, names, numbers);
      if (last < first) fail("the range ends before it begins");
      for (size_t i = first; i <= last; ++i) slot_.columns.push_back(i);
    }
    return slot_;
  }

  // Finds the columns of a vector that a model was trained with, in their order.
  SlotColumns by_model(const std::vector<std::string_view>& learned, const std::vector<std::string>& names,
                       const Numbers& numbers) {
    Elements elements = elements_of(learned, slot_);
    if (!elements.fit)
      fail("the model was trained with other options of these columns; it has: " + files::listed(elements.columns));
    const std::vector<std::string>& known = elements.columns;
    slot_.fills = std::move(elements.fills);
    const auto check = [&](const std::string& column) {
      if (!column.empty() && std::find(known.begin(), known.end(), column) == known.end())
        fail("the model was trained without the column " + files::quoted(column) + "; it has: " + files::listed(known));
    };
    bool all_named = true;
    for (const Item& item : items_) {
      check(item.first);
      check(item.last);
      all_named = all_named && !item.first.empty() && item.last.empty();
    }
    for (const std::string& column : known) {
      const auto is = [&](const Item& item) { return item.first == column; };
      if (all_named && std::none_of(items_.begin(), items_.end(), is))
        fail("lacks the column " + files::quoted(column) + ", which the model was trained with");
      if (numbers.count(column) == 0)
        fail("the files have no column " + files::quoted(column) +
             ", which the model was trained with; known: " + files::listed(names));
      slot_.columns.push_back(numbers.at(column));
    }
    return slot_;
  }

  // Marks the columns of a slot that is left out, as far as the file has them: they do not belong to "*".
  void pass(const Numbers& numbers, std::vector<uint8_t>& used) const {
    for (const Item& item : items_) {
      const auto first = numbers.find(item.first), last = item.last.empty() ? first : numbers.find(item.last);
      if (first == numbers.end() || last == numbers.end()) continue;
      for (size_t i = first->second; i <= last->second; ++i) used[i] = 1;
    }
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
    if (!files::is_utf8(result)) fail(files::quoted(result) + " is not UTF-8");
    return result;
  }
  [[nodiscard]] size_t number(const std::string& column, const std::vector<std::string>& names,
                              const Numbers& numbers) const {
    const auto at = numbers.find(column);
    if (at != numbers.end()) return at->second;
    fail("unknown column " + files::quoted(column) + "; known: " + files::listed(names));
  }
  // Adds a column, or the range that begins with it.
  void add(const std::string& column) {
    items_.push_back({column, ""});
    if (!column.empty() && accept("..")) items_.back().last = name();
  }
  // The next letters and digits.
  std::string word() {
    skip_spaces();
    std::string word;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_])) != 0) word += text_[at_++];
    return word;
  }
  Type type() {
    const size_t begin = at_;
    const std::string word = this->word();
    Type result;
    if (word == "missing" || word == "indicator") {
      at_ = begin;
      return result;
    }
    if (word == "category" || word == "words" || word == "characters") {
      if (word == "category")
        result.kind = Kind::kCategory;
      else
        result.kind = word == "words" ? Kind::kWords : Kind::kCharacters;
      result.dtype = TN_I32;
      if (accept("(")) result.vocabulary = in_brackets(end_of_file(), word + "(FILE)");
      return result;
    }
    if (word == "date") return date();
    const auto* const named =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NamedType& t) { return word == t.name; });
    if (named == std::end(kTypes))
      fail("unknown type \"" + word +
           "\"; known: f32, f64, i8, i16, i32, i64, u8, u16, u32, category, date, words, characters");
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
  // The bracket behind the name of a file, which may have brackets: the first one behind which are options alone.
  [[nodiscard]] size_t end_of_file() const {
    constexpr std::string_view kOptions[] = {"missing", "list",    "multihot", "lower",     "most", "least",
                                             "grams",   "buckets", "chunks",   "indicator", "size"};
    for (size_t end = text_.find(')', at_); end != std::string::npos; end = text_.find(')', end + 1)) {
      const std::string_view rest = std::string_view(text_).substr(end + 1);
      const size_t begin = rest.find_first_not_of(' ');
      const auto follows = [&](std::string_view option) { return rest.substr(begin, option.size()) == option; };
      if (begin == std::string_view::npos || std::any_of(std::begin(kOptions), std::end(kOptions), follows)) return end;
    }
    return std::string::npos;
  }
  // The text up to a closing bracket at `end`, behind which it moves.
  std::string in_brackets(size_t end, const std::string& form) {
    if (end == std::string::npos || end <= at_) fail("expected " + form);
    std::string result = text_.substr(at_, end - at_);
    at_ = end + 1;
    return result;
  }
  Type date() {
    Type result;
    result.kind = Kind::kDate;
    result.dtype = TN_F64;
    if (accept("(")) result.format = in_brackets(text_.find(')', at_), "date(FORMAT)");
    if (const std::string why = format_fault(result.format); !why.empty()) fail("date: " + why);
    for (size_t begin = at_;; begin = at_) {
      const std::optional<DatePart> part = date_part(word());
      if (!part) {
        at_ = begin;
        return result;
      }
      result.parts.push_back(*part);
      result.dtype = TN_F32;
    }
  }
  void options() {
    for (size_t begin = at_;; begin = at_) {
      const std::string option = word();
      Type& type = slot_.type;
      if (option == "missing") {
        missing();
      } else if (option == "indicator") {
        slot_.treatment.indicator = true;
      } else if (option == "list") {
        type.separator = accept("(") ? in_brackets(text_.find(')', at_ + 1), "list(SEPARATOR)") : " ";
      } else if (option == "size") {
        type.size = number_behind("size");
      } else if (option == "multihot") {
        type.multi_hot = true;
        type.dtype = TN_F32;
      } else if (option == "chunks") {
        type.chunks = true;
      } else if (option == "lower") {
        type.lower_case = true;
      } else if (option == "grams") {
        type.grams = number_behind("grams");
      } else if (option == "buckets") {
        type.buckets = number_behind("buckets");
      } else if (option == "most") {
        type.most_words = number_behind("most");
      } else if (option == "least") {
        type.least_count = number_behind("least");
      } else {
        at_ = begin;
        return;
      }
    }
  }
  int64_t number_behind(const char* option) {
    skip_spaces();
    int64_t result = 0;
    const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), result);
    constexpr int64_t kMost = int64_t{1} << 30;
    if (error != std::errc() || result < 1 || result > kMost)
      fail(std::string("expected a whole number from 1 to 1073741824 after \"") + option + "\"");
    at_ = static_cast<size_t>(stop - text_.data());
    return result;
  }
  // What follows "missing".
  void missing() {
    static const std::unordered_map<std::string_view, Missing> words = {
        {"error", Missing::kError}, {"value", Missing::kValue},   {"skip", Missing::kSkip},
        {"mean", Missing::kMean},   {"median", Missing::kMedian}, {"frequent", Missing::kFrequent}};
    Treatment& treatment = slot_.treatment;
    skip_spaces();
    if (accept("\"")) {
      treatment.text = in_brackets(text_.find('"', at_), "missing \"TEXT\"");
      treatment.policy = Missing::kValue;
      return;
    }
    const size_t end = std::min(text_.find(' ', at_), text_.size());
    const std::string value = text_.substr(at_, end - at_);
    at_ = end;
    const auto policy = words.find(value);
    treatment.policy = policy == words.end() ? Missing::kValue : policy->second;
    if (policy != words.end()) return;
    treatment.text = value;
    double number = 0;
    if (files::read_float(value.data(), value.data() + value.size(), &number) != value.data() + value.size())
      fail("expected error, skip, value, mean, median, frequent, a number or a text in quotes after \"missing\", got " +
           files::quoted(value));
  }
  // Refuses options that the type does not have.
  void check() {
    Type& type = slot_.type;
    const Treatment& treatment = slot_.treatment;
    const bool average = treatment.policy == Missing::kMean || treatment.policy == Missing::kMedian;
    if (average && type.kind == Kind::kInferred) type.kind = Kind::kFloat, type.dtype = TN_F32;
    const bool numbers = type.kind == Kind::kInferred || type.kind == Kind::kFloat || type.kind == Kind::kInteger;
    if (average && (type.kind != Kind::kFloat || !type.separator.empty()))
      fail("a mean or median needs a column of the type f32 or f64");
    if (treatment.indicator && type.kind != Kind::kFloat && type.kind != Kind::kDate && (!numbers || type.limit >= 0))
      fail(
          "an indicator stands beside numbers without a limit; a category has a number of its own for what is "
          "missing, with \"missing value\"");
    if (treatment.policy == Missing::kFrequent &&
        (!type.separator.empty() || (!numbers && type.kind != Kind::kCategory)))
      fail("\"missing frequent\" needs a column of numbers or a category");
    if (treatment.policy == Missing::kFrequent && !type.vocabulary.empty())
      fail("\"missing frequent\" makes the most frequent category number 0, so it takes no file");
    if (!type.separator.empty() && !numbers && type.kind != Kind::kCategory) fail("a list holds numbers or categories");
    if (!type.separator.empty() && type.kind == Kind::kInferred) fail("a list needs a type, such as f32");
    if (type.size > 0 && type.separator.empty()) fail("\"size\" is the number of values of a list");
    if ((!type.separator.empty() || type.is_text()) && slot_.is_vector) fail("a list or text must be one column");
    if ((type.is_ragged() || type.multi_hot) &&
        (treatment.indicator || (treatment.policy && *treatment.policy != Missing::kSkip)))
      fail("a list or text that is missing is empty; it has no other treatment than \"missing skip\"");
    if ((type.lower_case || type.grams > 1 || type.buckets > 0) && !type.is_text())
      fail("\"lower\", \"grams\" and \"buckets\" are options of words and characters");
    constexpr int64_t kMostGrams = 16;
    if (type.grams > kMostGrams) fail("\"grams\" have at most 16 words");
    if (type.buckets > 0 && type.grams == 1) fail("\"buckets\" are of n-grams: \"grams 2\" makes those of two words");
    check_category();
  }
  // Refuses options of categories.
  void check_category() {
    const Type& type = slot_.type;
    const bool category = type.kind == Kind::kCategory;
    if (type.is_counted() && !category && !type.is_text())
      fail("\"most\" and \"least\" are options of words, characters and categories");
    if ((type.multi_hot || type.chunks) && !category) fail("\"multihot\" and \"chunks\" are options of categories");
    if (type.multi_hot && type.size > 0) fail("\"multihot\" takes a list of any size");
    const bool frequent = slot_.treatment.policy == Missing::kFrequent;
    if (int{frequent} + int{type.chunks} + int{category && type.is_counted()} > 1)
      fail("of \"missing frequent\", \"chunks\" and \"most\" or \"least\", each determines the numbers of categories");
    if (category && (type.chunks || type.is_counted()) && !type.vocabulary.empty())
      fail("the file determines the numbers of categories, so \"chunks\", \"most\" and \"least\" have no effect");
  }

  const std::string& text_;
  size_t at_ = 0;
  SlotColumns slot_;
  std::vector<Item> items_;
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

// The columns that slots have taken.
struct Taken {
  const std::vector<std::string>& names;
  std::vector<uint8_t> used;  // by column

  void add(const SlotColumns& slot) {
    for (const size_t column : slot.columns)
      if (used[column]++ != 0)
        throw tn::Failure(TN_INVALID, "columns", "duplicate column " + files::quoted(names[column]));
  }
};

// Returns the slots that are needed, each column one.
template <typename Needed>
std::vector<SlotColumns> single_columns(const std::vector<std::string>& names, const Needed& needed) {
  std::vector<SlotColumns> slots;
  for (size_t column = 0; column < names.size(); ++column)
    if (needed(names[column])) slots.push_back({names[column], {column}, false, false, {}});
  if (slots.empty()) slots.push_back({names[0], {0}, false, false, {}});
  for (SlotColumns& slot : slots) slot.rest = slots.size() == names.size();
  return slots;
}

}  // namespace

std::vector<SlotColumns> slot_columns(const std::vector<std::string>& entries, const std::vector<std::string>& names,
                                      const tn::ReaderOpen& open, bool all) {
  check_number(entries, names);
  const auto needed = [&](const std::string& slot) { return all || open.needed(slot); };
  if (entries.empty()) return single_columns(names, needed);
  std::vector<SlotColumns> slots;
  Taken taken{names, std::vector<uint8_t>(names.size())};
  Numbers numbers;
  for (size_t column = 0; column < names.size(); ++column) numbers.emplace(names[column], column);
  std::vector<Entry> parsed;
  std::unordered_set<std::string> slot_names;
  size_t rests = 0;
  bool any = false;  // slot that is needed
  for (const std::string& entry : entries) {
    files::check_cancel(open.cancel(), "columns");
    const Entry& added = parsed.emplace_back(entry);
    rests += added.has_rest() ? 1 : 0;
    any = any || needed(added.slot());
    if (rests > 1) throw tn::Failure(TN_INVALID, "columns", "duplicate \"*\"");
  }
  std::vector<size_t>* rest = nullptr;
  slots.reserve(parsed.size());
  for (Entry& entry : parsed) {
    const bool fresh = slot_names.insert(entry.slot()).second;
    if (any ? !needed(entry.slot()) : !slots.empty()) {
      entry.pass(numbers, taken.used);
      continue;
    }
    const std::vector<std::string_view> learned =  // the elements of others are categories
        entry.multi_hot() ? std::vector<std::string_view>() : open.columns(entry.slot());
    slots.push_back(learned.empty() ? entry.by_file(names, numbers) : entry.by_model(learned, names, numbers));
    taken.add(slots.back());
    if (!fresh) throw tn::Failure(TN_INVALID, "columns", "two slots are named \"" + entry.slot() + "\"");
    if (learned.empty() && entry.has_rest()) rest = &slots.back().columns;
    slots.back().rest = rest == &slots.back().columns;
  }
  std::vector<size_t> rest_columns;
  for (size_t column = 0; rest != nullptr && column < names.size(); ++column)
    if (taken.used[column] == 0) rest_columns.push_back(column);
  if (rest != nullptr) rest->insert(rest->begin(), rest_columns.begin(), rest_columns.end());
  for (const SlotColumns& slot : slots) {
    if (slot.columns.empty()) throw tn::Failure(TN_INVALID, "columns", "no column is left for \"" + slot.name + "\"");
    if (slot.is_vector && slot.type.kind == Kind::kCategory)
      throw tn::Failure(TN_INVALID, "columns", "the category \"" + slot.name + "\" must be one column");
  }
  return slots;
}

}  // namespace tenon::csv
