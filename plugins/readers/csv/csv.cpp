// Opens the reader "csv": attributes, types and vocabularies. SPDX-License-Identifier: Apache-2.0
#include "csv.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <tenon/plugin.hpp>

#include "number.h"

namespace tenon::csv {

namespace {

MissingRules missing_rules(const tn::Attributes& attributes) {
  MissingRules rules;
  const std::string policy = attributes.text("missing");
  rules.policy = policy == "value" ? Missing::kValue : policy == "skip" ? Missing::kSkip : Missing::kError;
  rules.value = attributes.number("missing_value");
  if (attributes.has("missing_texts")) rules.texts = attributes.texts("missing_texts");
  return rules;
}

char delimiter_of(const tn::Attributes& attributes) {
  const std::string text = attributes.text("delimiter");
  const auto byte = static_cast<unsigned char>(text.empty() ? '\0' : text[0]);
  if (text.size() != 1 || std::isalnum(byte) != 0 || byte < '\t' || byte > '~' || std::strchr("\"\r\n+-.", byte))
    throw tn::Failure(
        TN_INVALID, "delimiter",
        "expected one character other than a letter, digit, quote or sign, such as \",\", \";\" or a tab");
  return text[0];
}

// The type of a column, inferred from some of its values.
struct Guess {
  bool integer = true;
  std::string number, text;  // the first value that is a number, and the first that is not; "": none yet
  files::Line at;            // the line of `text`, without its contents

  void see(const std::string& field, const files::Line& line) {
    const std::string_view digits = files::without_plus(field);
    const char* const end = digits.data() + digits.size();
    int64_t whole = 0;
    const auto [stop, error] = std::from_chars(digits.data(), end, whole);
    integer = integer && error == std::errc() && stop == end;
    double value = 0;
    const bool is_number = integer || files::read_float(digits.data(), end, &value) == end;
    std::string& first = is_number ? number : text;
    if (!first.empty()) return;
    first = field;
    if (!is_number) at = {{}, line.file, line.offset};
  }
};

// The type with which a model was trained. A category whose names are unknown is inferred: its type is that of numbers.
Type learned_type(const tn::ReaderOpen& open, const std::string& slot) {
  const tn_dtype dtype = open.dtype(slot);
  if (!open.names(slot).empty()) return {Kind::kCategory, TN_I32, -1, ""};
  if (dtype == TN_F32 || dtype == TN_F64) return {Kind::kFloat, dtype, -1, ""};
  for (const tn_dtype integer : {TN_I8, TN_I16, TN_I64, TN_U8, TN_U16, TN_U32})
    if (dtype == integer) return {Kind::kInteger, dtype, -1, ""};
  return {};
}

}  // namespace

void Csv::describe(tn::ReaderDescription& d) {
  d.type("csv", "records of text fields with a delimiter between them, as RFC 4180 has them, plain or gzip");
  files::Lines::describe(d);
  files::Encoding::describe(d);
  d.attribute(tn::bool_attribute("header", true).doc("whether the first line of each file names the columns"));
  d.attribute(tn::strings_attribute("names").doc(
      "names of the columns of files without a header; without it they are c0, c1, ..."));
  d.attribute(tn::strings_attribute("columns").doc(
      "the slots, each \"column\", \"column:type\" or \"slot = column, first..last, *:type\"; types are "
      "f32 f64 i8 i16 i32 i64 u8 u16 u32, \"i32<10\" and category; without it a slot for each column"));
  d.attribute(tn::string_attribute("delimiter", ",").doc("the character between two fields"));
  d.attribute(
      tn::string_attribute("sequence_by")
          .doc("a column: the records with one value of it, which follow one another, are one sample, and slots are "
               "sequences with one row for each record, except the slot of this column and those of per_sequence"));
  d.attribute(tn::strings_attribute("per_sequence")
                  .doc("slots with one value for each sequence: its records must have the same"));
  d.attribute(tn::int_attribute("sample_records", 1000)
                  .at_least(1)
                  .doc("records at the beginning from which types that are not given are inferred"));
  d.attribute(tn::string_attribute("missing", "error")
                  .one_of({"error", "value", "skip"})
                  .doc("what an empty field of a used column means: an error, missing_value (of a category: one number "
                       "more; of \"i32<10\": an error), or that its record is left out"));
  d.attribute(tn::float_attribute("missing_value", 0).doc("the number that stands for what is missing"));
  d.attribute(tn::strings_attribute("missing_texts").doc("texts that also mean missing, such as \"NA\" or \"?\""));
  d.attribute(tn::bool_attribute("unknown_category", false)
                  .doc("give a category that its file does not list one number more, instead of an error"));
  d.attribute(
      tn::string_attribute("save_vocabularies")
          .doc("folder in which the categories found are written to COLUMN.txt, for category(FILE) elsewhere; a "
               "file that is there must hold the same"));
}

Csv::Csv(const tn::ReaderOpen& open)
    : lines_(open, '"'),
      shard_(open.shard()),
      header_(open.attributes().flag("header")),
      parser_(delimiter_of(open.attributes()), files::Encoding(open.attributes()), missing_rules(open.attributes())) {
  const tn::Attributes attributes = open.attributes();
  find_columns(open);
  const std::vector<std::string> entries =
      attributes.has("columns") ? attributes.texts("columns") : std::vector<std::string>();
  std::vector<std::string> names;
  for (size_t i = 0; i < first_columns_; ++i) names.push_back(parser_.columns[i].name);
  const std::vector<SlotColumns> slots = inferred(slot_columns(entries, names, open), open);
  for (const SlotColumns& slot : slots) add_slot(slot);
  check_layouts(std::any_of(slots.begin(), slots.end(), [](const SlotColumns& slot) { return slot.rest; }));
  find_sequences(open);
  find_vocabularies(slots, open);
  if (parser_.missing().policy == Missing::kValue) parser_.check_missing_value();
  parser_.prepare();
  index(open.shard());
  to_.resize(slots_.size());
}

// Finds the types of slots without one: those that a model was trained with, else from the first records: i64 if all
// values fit, else f32, else category.
std::vector<SlotColumns> Csv::inferred(std::vector<SlotColumns> slots, const tn::ReaderOpen& open_with) {
  const int64_t most = open_with.attributes().integer("sample_records");
  const auto open = [](const SlotColumns& slot) { return slot.type.kind == Kind::kInferred; };
  for (SlotColumns& slot : slots)
    if (open(slot)) slot.type = learned_type(open_with, slot.name);
  if (std::none_of(slots.begin(), slots.end(), open)) return slots;
  std::vector<Guess> guesses(parser_.columns.size());
  int64_t seen = 0;
  for_each_record([&](const files::Line& line) {
    std::vector<std::string> texts;
    parsing(line, [&] { texts = parser_.by_column(line.text, layout_of_[line.file]); });
    for (size_t i = 0; i < texts.size(); ++i)
      if (!parser_.missing().is_missing(texts[i])) guesses[i].see(texts[i], line);
    return ++seen < most;
  });
  for (SlotColumns& slot : slots) {
    if (!open(slot)) continue;
    bool integer = true;
    slot.type = {Kind::kInteger, TN_I64, -1, ""};
    for (const size_t number : slot.columns) {
      const Guess& guess = guesses[number];
      Column& column = parser_.columns[number];
      column.sampled = most;
      column.joined = slot.is_vector;
      column.entry = slot.is_vector || slot.name != column.name ? slot.name + " = ..." : column.name;
      integer = integer && guess.integer;
      if (guess.text.empty()) continue;
      if (!guess.number.empty())  // as a category, the codes of texts among numbers would go unnoticed
        throw lines_.failure(guess.at, "column " + files::quoted(column.name) + ": " + files::quoted(guess.text) +
                                           " is not a number, unlike " + files::quoted(guess.number) + ": " +
                                           column.advice(guess.text));
      if (slot.is_vector)
        throw tn::Failure(
            TN_INVALID, "columns",
            "the column " + files::quoted(column.name) + " of \"" + slot.name + "\" does not hold numbers");
      slot.type = {Kind::kCategory, TN_I32, -1, ""};
    }
    if (slot.type.kind == Kind::kInteger && !integer) slot.type = {Kind::kFloat, TN_F32, -1, ""};
  }
  return slots;
}

void Csv::add_slot(const SlotColumns& slot) {
  uint64_t offset = 0;
  for (const size_t number : slot.columns) {
    Column& column = parser_.columns[number];
    column.slot = static_cast<int32_t>(slots_.size());
    column.offset = offset;
    column.set_type(slot.type);
    offset += tn_dtype_bytes(slot.type.dtype);
  }
  tn::ReaderSlot made{slot.name, slot.type.dtype, {}, slot.type.limit};
  if (slot.is_vector) {
    std::vector<std::string_view> names;
    for (const size_t number : slot.columns) names.emplace_back(parser_.columns[number].name);
    made.shape = {static_cast<int64_t>(slot.columns.size())};
    made.names = std::make_shared<const tn::Names>(std::vector<std::string_view>(), names);
  }
  slots_.push_back(made);
}

void Csv::find_vocabularies(const std::vector<SlotColumns>& slots, const tn::ReaderOpen& open) {
  std::vector<size_t> built;
  const bool unknown = open.attributes().flag("unknown_category");
  for (const SlotColumns& slot : slots) {
    if (slot.type.kind != Kind::kCategory) continue;
    Column& column = parser_.columns[slot.columns.front()];
    column.vocabulary = parser_.vocabularies.size();
    const bool given = !slot.type.vocabulary.empty();
    const std::string path = open.path(slot.type.vocabulary);
    files::Vocabulary own = given ? files::Vocabulary(path, open) : files::Vocabulary();
    files::Vocabulary learned(open.names(slot.name));
    if (learned.size() > 0) learned.require_known(own.texts(), path);
    if (!given && (learned.size() == 0 || !unknown)) built.push_back(slot.columns.front());
    parser_.vocabularies.push_back(learned.size() > 0 ? std::move(learned) : std::move(own));
  }
  if (!built.empty()) build_vocabularies(built);
  const bool missing = parser_.missing().policy == Missing::kValue;
  for (Column& column : parser_.columns) {
    if (column.slot < 0 || column.type.kind != Kind::kCategory) continue;
    const files::Vocabulary& vocabulary = parser_.vocabularies[column.vocabulary];
    const int32_t size = vocabulary.size();
    if (missing) column.absent = size;
    if (unknown) column.unknown = size;
    tn::ReaderSlot& slot = slots_[static_cast<size_t>(column.slot)];
    slot.index_limit = std::max(size + (missing || unknown ? 1 : 0), 1);
    slot.names = vocabulary.names();
  }
  if (open.attributes().has("save_vocabularies") && open.shard().number == 0) save_vocabularies(open);
}

// Builds vocabularies from the data of all shards, in order. If the model has names for a column, refuses other
// texts instead.
void Csv::build_vocabularies(const std::vector<size_t>& columns) {
  std::vector<std::set<std::string>> found(columns.size());
  const auto left_out = [&](const files::Line& line) {
    return parser_.missing().policy == Missing::kSkip && parser_.lacks_value(line.text, layout_of_[line.file]);
  };
  for_each_record([&](const files::Line& line) {
    std::vector<std::string> texts;
    parsing(line, [&] { texts = parser_.by_column(line.text, layout_of_[line.file]); });
    for (size_t i = 0; i < columns.size(); ++i) {
      const Column& column = parser_.columns[columns[i]];
      const std::string& text = texts[columns[i]];
      if (parser_.missing().is_missing(text)) continue;
      const files::Vocabulary& learned = parser_.vocabularies[column.vocabulary];
      if (!files::is_utf8(text))
        throw lines_.failure(line, "column " + files::quoted(column.name) + ": " + files::not_utf8(text));
      if (learned.size() == 0)
        found[i].insert(text);
      else if (learned.find(text) < 0 && !left_out(line))
        throw lines_.failure(line, "column " + files::quoted(column.name) + ": " + learned.not_known(text));
    }
    return true;
  });
  for (size_t i = 0; i < columns.size(); ++i)
    for (const std::string& text : files::in_order(found[i]))
      parser_.vocabularies[parser_.columns[columns[i]].vocabulary].add(text);
}

void Csv::save_vocabularies(const tn::ReaderOpen& open) const {
  const std::string folder = open.path(open.attributes().text("save_vocabularies"));
  for (const Column& column : parser_.columns) {
    if (column.slot < 0 || column.type.kind != Kind::kCategory) continue;
    if (column.name.find('/') != std::string::npos || column.name[0] == '.')
      throw tn::Failure(TN_INVALID, "save_vocabularies", "the column " + files::quoted(column.name) + " names no file");
    const std::string path = folder + "/" + column.name + ".txt";
    parser_.vocabularies[column.vocabulary].write(path, "read it with the type category(FILE)", open);
  }
}

namespace {

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.csv", "0.1.0", "reads CSV files", "Apache-2.0");
  plugin.reader<Csv>();
}

}  // namespace

}  // namespace tenon::csv

const tn_plugin* tenon_plugin() { return tn::entry<tenon::csv::describe>(); }
