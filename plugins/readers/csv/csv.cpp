// Opens the reader "csv": attributes, types and vocabularies. SPDX-License-Identifier: Apache-2.0
#include "csv.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
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

files::LineRules line_rules(const tn::Attributes& attributes) {
  files::LineRules rules;
  rules.quote = attributes.flag("quotes") ? '"' : '\0';
  rules.comment = attributes.text("comment");
  rules.skipped = static_cast<uint64_t>(attributes.integer("skip_lines"));
  if (rules.comment.empty()) return rules;
  const auto first = static_cast<unsigned char>(rules.comment[0]);
  const bool sign = rules.comment.size() == 1 && std::strchr("+-.", first) != nullptr;
  if (std::isalnum(first) != 0 || first <= ' ' || first == '"' || sign || rules.comment == attributes.text("delimiter"))
    throw tn::Failure(
        TN_INVALID, "comment",
        "expected a text that begins no record, such as \"#\", \"%\" or \"//\", got " + files::quoted(rules.comment));
  return rules;
}

// The type of a column, inferred from some of its values.
struct Guess {
  bool integer = true;
  std::string number, text;  // the first value that is a number, and the first that is not; "": none yet
  files::Line at;            // the line of `text`, without its contents

  void see(const std::string& field, std::string_view digits, const files::Line& line) {
    const char* const end = digits.data() + digits.size();
    int64_t whole = 0;
    const auto [stop, error] = std::from_chars(digits.data(), end, whole);
    integer = integer && error == std::errc() && stop == end;
    double value = 0;
    const bool is_number = !digits.empty() && (integer || files::read_float(digits.data(), end, &value) == end);
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
  d.type("csv", "records of text fields with a delimiter between them, as RFC 4180 has them");
  files::Lines::describe(d);
  files::Encoding::describe(d);
  d.attribute(tn::bool_attribute("header", true).doc("whether the first line of each file names the columns"));
  d.attribute(tn::strings_attribute("names").doc(
      "names of the columns of files without a header; without it they are c0, c1, ..."));
  d.attribute(tn::strings_attribute("columns").doc(
      "the slots, each \"column\", \"column:type\" or \"slot = column, first..last, *:type\"; types are "
      "f32 f64 i8 i16 i32 i64 u8 u16 u32, \"i32<10\", category, date, words and characters, with options such as "
      "\"missing mean\"; without it a slot for each column"));
  Delimiter::describe(d);
  NumberForm::describe(d);
  d.attribute(tn::string_attribute("comment", "")
                  .doc("what a line that is a comment begins with, such as \"#\"; comments are left out like empty "
                       "lines; \"\": none"));
  d.attribute(tn::int_attribute("skip_lines", 0)
                  .at_least(0)
                  .doc("lines at the beginning of each file that are not read, such as a title"));
  d.attribute(
      tn::string_attribute("sequence_by")
          .doc("a column: the records with one value of it, which follow one another, are one sample, and slots are "
               "sequences with one row for each record, except the slot of this column and those of per_sequence"));
  d.attribute(tn::strings_attribute("per_sequence")
                  .doc("slots with one value for each sequence: its records must have the same"));
  d.attribute(tn::bool_attribute("sentences", false)
                  .doc("the records between blank lines are one sample, a sequence as with sequence_by: the format of "
                       "CoNLL"));
  Windows::describe(d);
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
    : lines_(open, line_rules(open.attributes())),
      shard_(open.shard()),
      header_(open.attributes().flag("header")),
      parser_(Delimiter(open.attributes()), files::Encoding(open.attributes()), NumberForm(open.attributes()),
              missing_rules(open.attributes())),
      sentences_(open.attributes().flag("sentences")) {
  find_columns(open);
  check_names(open);
  const std::vector<SlotColumns> slots = inferred(needed_slots(open), open);
  for (const SlotColumns& slot : slots) add_slot(slot);
  if (windows_) windows_->permit_missing(parser_);
  parser_.lists.resize(slots_.size());
  check_layouts(std::any_of(slots.begin(), slots.end(), [](const SlotColumns& slot) { return slot.rest; }));
  find_sequences(open);
  find_vocabularies(slots, open);
  find_fills(slots);
  parser_.check_fills();
  for (const SlotColumns& slot : slots)
    if (slot.has_dimension() && slot.type.size == 0) name_elements(slot);
  if (windows_) window_slots_ = windows_->prepare(parser_, slots_, open);
  parser_.prepare();
  to_.resize(slots_.size());
  index(open);
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
  std::string room;
  for_each_record([&](const files::Line& line) {
    std::vector<std::string> texts;
    parsing(line, [&] { texts = parser_.by_column(line.text, layout_of_[line.file]); });
    for (size_t i = 0; i < texts.size(); ++i)
      if (!parser_.missing().is_missing(texts[i])) guesses[i].see(texts[i], parser_.form().plain(texts[i], room), line);
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
                                           column.advice(guess.text, {}) + NumberForm::hint(guess.text));
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
  const uint64_t bytes = tn_dtype_bytes(slot.type.dtype), values = slot.type.values();
  const size_t count = slot.columns.size();
  for (size_t i = 0; i < count; ++i) {
    Column& column = parser_.columns[slot.columns[i]];
    column.slot = static_cast<int32_t>(slots_.size());
    column.offset = i * values * bytes;
    if (slot.treatment.indicator) column.flag = static_cast<int64_t>((count * values + i) * bytes);
    column.set_type(slot.type);
  }
  treat_missing(slot);
  tn::ReaderSlot made{slot.name, slot.type.dtype, {}, slot.type.limit};
  if (slot.has_dimension()) made.shape = {static_cast<int64_t>(count * (values + (slot.treatment.indicator ? 1 : 0)))};
  is_list_.push_back(slot.type.is_ragged());
  if (is_list_.back()) made.storage = TN_RAGGED;
  slots_.push_back(made);
}

// Gives the columns of a slot what they make of missing values.
void Csv::treat_missing(const SlotColumns& slot) {
  const Treatment& treatment = slot.treatment;
  const bool category = slot.type.kind == Kind::kCategory;
  if (treatment.indicator && category)
    throw tn::Failure(TN_INVALID, "columns",
                      files::quoted(slot.name) + " holds texts, not numbers, and a category has no indicator");
  double fill = parser_.missing().value;
  if (treatment.text && !category) {
    const char *const from = treatment.text->data(), *const end = from + treatment.text->size();
    if (files::read_float(from, end, &fill) != end)
      throw tn::Failure(TN_INVALID, "columns",
                        files::quoted(slot.name) + ": missing " + files::quoted(*treatment.text) + " is not a number");
  }
  for (size_t i = 0; i < slot.columns.size(); ++i) {
    Column& column = parser_.columns[slot.columns[i]];
    column.missing = treatment.policy.value_or(parser_.missing().policy);
    column.own_fill = treatment.text || treatment.is_derived();
    column.fill = slot.fills.empty() ? fill : slot.fills[i];
    if (treatment.text) column.fill_text = *treatment.text;
  }
}

std::vector<SlotColumns> Csv::needed_slots(const tn::ReaderOpen& open) {
  const tn::Attributes attributes = open.attributes();
  std::vector<std::string> names;
  for (size_t i = 0; i < first_columns_; ++i) names.push_back(parser_.columns[i].name);
  if (Windows::is_used(attributes)) windows_.emplace(names, open);
  try {
    return slot_columns(attributes.has("columns") ? attributes.texts("columns") : std::vector<std::string>(), names,
                        open, windows_.has_value());
  } catch (const tn::Failure& failure) {
    if (header_hint_.empty()) throw;
    throw tn::Failure(failure.code(), "columns", failure.what() + ("; " + header_hint_));
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
