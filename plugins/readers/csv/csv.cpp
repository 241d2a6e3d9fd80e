// The reader "csv": records of fields with delimiters, RFC 4180, plain or gzip. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <string>
#include <tenon/plugin.hpp>
#include <unordered_set>
#include <vector>

#include "lines.h"
#include "number.h"
#include "record.h"
#include "sequences.h"

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

class Csv {
 public:
  static void describe(tn::ReaderDescription& d);
  explicit Csv(const tn::ReaderOpen& open);

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return key_ < 0 ? lines_.records() : sequences_.count(); }
  void read(int64_t index, tn::Samples& to);
  void ahead(int64_t index) const { lines_.ahead(key_ < 0 ? index : sequences_.records(index).first); }

 private:
  void find_columns(const tn::ReaderOpen& open);
  void check_line_end(const files::Line& line);
  void check_header(const files::Line& line, const std::vector<std::string>& names);
  std::vector<SlotColumns> inferred(std::vector<SlotColumns> slots, int64_t most);
  void add_slot(const SlotColumns& slot);
  void find_vocabularies(const std::vector<SlotColumns>& slots, const tn::ReaderOpen& open);
  void build_vocabularies(const std::vector<size_t>& columns);
  void save_vocabularies(const tn::ReaderOpen& open) const;
  void index(const tn::Shard& shard);
  void find_sequences(const tn::Attributes& attributes);
  bool begins_sequence(const files::Line& line);
  void read_sequence(int64_t index, tn::Samples& to);
  // Calls each(line) for the records, without headers and empty lines, until it returns false.
  template <typename Each>
  void for_each_record(const Each& each);
  template <typename Work>
  void parsing(const files::Line& line, const Work& work);

  files::Lines lines_;
  bool header_;
  RecordParser parser_;
  std::vector<tn::ReaderSlot> slots_;
  std::vector<uint8_t*> to_;  // of each slot
  int64_t key_ = -1;          // number of the column whose value the records of a sequence share; -1: no sequences
  files::Sequences<std::string> sequences_;
  std::vector<std::vector<uint8_t>> rows_;  // of each slot: the records of the sequence that is read
};

void Csv::describe(tn::ReaderDescription& d) {
  d.type("csv", "records of text fields with a delimiter between them, as RFC 4180 has them, plain or gzip");
  files::Lines::describe(d);
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
      header_(open.attributes().flag("header")),
      parser_(delimiter_of(open.attributes()), missing_rules(open.attributes())) {
  const tn::Attributes attributes = open.attributes();
  find_columns(open);
  std::vector<std::string> names;
  for (const Column& column : parser_.columns) names.push_back(column.name);
  const std::vector<SlotColumns> slots =
      inferred(slot_columns(attributes.has("columns") ? attributes.texts("columns") : std::vector<std::string>(), names,
                            open.cancel()),
               attributes.integer("sample_records"));
  for (const SlotColumns& slot : slots) add_slot(slot);
  find_sequences(attributes);
  find_vocabularies(slots, open);
  if (parser_.missing().policy == Missing::kValue) parser_.check_missing_value();
  parser_.prepare();
  index(open.shard());
  to_.resize(slots_.size());
}

template <typename Each>
void Csv::for_each_record(const Each& each) {
  bool more = true;
  for (size_t file = 0; file < lines_.files() && more; ++file) {
    bool first = true;
    lines_.for_each_of(file, [&](const files::Line& line) {
      const bool heads = std::exchange(first, first && line.text.empty()) && header_;
      if (line.text.empty() || heads) return true;
      return more = each(line);
    });
  }
}

// Calls work(), and adds file and line to a BadRecord.
template <typename Work>
void Csv::parsing(const files::Line& line, const Work& work) {
  try {
    work();
  } catch (const BadRecord& bad) {
    throw lines_.failure(line, bad.why);
  }
}

void Csv::find_columns(const tn::ReaderOpen& open) {
  std::vector<std::string> names;
  for (size_t file = 0; file < lines_.files(); ++file) {
    std::vector<std::string> found;
    lines_.for_each_of(file, [&](const files::Line& line) {
      if (line.text.empty()) return true;
      check_line_end(line);
      parsing(line, [&] { found = parser_.split(line.text, 0); });
      if (header_) check_header(line, found);
      return false;
    });
    if (found.empty() && header_) throw tn::Failure(TN_BAD_DATA, lines_.path(file), "empty; expected a header");
    if (!header_)
      for (size_t i = 0; i < found.size(); ++i) found[i] = "c" + std::to_string(i);
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i].empty()) found[i] = "c" + std::to_string(i);
    if (names.empty()) names = found;
    if (header_ && found != names)
      throw tn::Failure(TN_BAD_DATA, lines_.path(file), "its header differs from that of " + lines_.path(0));
  }
  const tn::Attributes attributes = open.attributes();
  if (attributes.has("names")) {
    const std::vector<std::string> given = attributes.texts("names");
    if (header_) throw tn::Failure(TN_INVALID, "names", "the files have a header; set header = false");
    if (!names.empty() && given.size() != names.size())
      throw tn::Failure(TN_INVALID, "names",
                        "expected " + std::to_string(names.size()) + " names, one for each column, got " +
                            std::to_string(given.size()));
    for (const std::string& name : given)
      if (const char* const fault = files::name_fault(name))
        throw tn::Failure(TN_INVALID, "names", files::quoted(name) + " " + fault);
    names = given;
  }
  if (names.empty()) throw tn::Failure(TN_BAD_DATA, lines_.path(0), "empty; its columns are unknown");
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : names) {
    files::check_cancel(open.cancel(), lines_.path(0));
    if (!seen.insert(name).second)
      throw tn::Failure(header_ ? TN_BAD_DATA : TN_INVALID, header_ ? lines_.path(0) : "names",
                        "two columns are named " + files::quoted(name));
    Column column;
    column.name = name;
    parser_.columns.push_back(column);
  }
}

// Checks the first line: if lines end with "\r" alone, as on old Macs, the whole file would be one line.
void Csv::check_line_end(const files::Line& line) {
  bool quoted = false;
  for (size_t i = 0; i + 1 < line.text.size(); ++i) {
    quoted = quoted != (line.text[i] == '"');
    if (line.text[i] == '\r' && !quoted)
      throw lines_.failure(line,
                           "a carriage return with text behind it: lines must end with \"\\n\" or \"\\r\\n\", not "
                           "with \"\\r\" alone");
  }
}

// Refuses names that cannot be names of slots, which hosts read as C strings and write as JSON, or of files.
void Csv::check_header(const files::Line& line, const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i)
    if (const char* const fault = files::name_fault(names[i]))
      throw lines_.failure(line,
                           "column " + std::to_string(i + 1) + ": its name " + files::quoted(names[i]) + " " + fault);
}

// Infers the types of slots without one from the first `most` records: i64 if all values fit, else f32, else category.
std::vector<SlotColumns> Csv::inferred(std::vector<SlotColumns> slots, int64_t most) {
  const auto open = [](const SlotColumns& slot) { return slot.type.kind == Kind::kInferred; };
  if (std::none_of(slots.begin(), slots.end(), open)) return slots;
  std::vector<Guess> guesses(parser_.columns.size());
  int64_t seen = 0;
  for_each_record([&](const files::Line& line) {
    std::vector<std::string> texts;
    parsing(line, [&] { texts = parser_.split(line.text, guesses.size()); });
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
  if (slot.is_vector) made.shape = {static_cast<int64_t>(slot.columns.size())};
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

// Builds vocabularies from the data of all shards, sorted by bytes. If the model has names for a column, refuses other
// texts instead.
void Csv::build_vocabularies(const std::vector<size_t>& columns) {
  std::vector<std::set<std::string>> found(columns.size());
  const auto left_out = [&](const files::Line& line) {
    return parser_.missing().policy == Missing::kSkip && parser_.lacks_value(line.text);
  };
  for_each_record([&](const files::Line& line) {
    std::vector<std::string> texts;
    parsing(line, [&] { texts = parser_.split(line.text, parser_.columns.size()); });
    for (size_t i = 0; i < columns.size(); ++i) {
      const Column& column = parser_.columns[columns[i]];
      const std::string& text = texts[columns[i]];
      if (parser_.missing().is_missing(text)) continue;
      const files::Vocabulary& learned = parser_.vocabularies[column.vocabulary];
      if (learned.size() == 0)
        found[i].insert(text);
      else if (learned.find(text) < 0 && !left_out(line))
        throw lines_.failure(line, "column " + files::quoted(column.name) + ": " + learned.not_known(text));
    }
    return true;
  });
  for (size_t i = 0; i < columns.size(); ++i)
    for (const std::string& text : found[i]) parser_.vocabularies[parser_.columns[columns[i]].vocabulary].add(text);
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

void Csv::index(const tn::Shard& shard) {
  int64_t all = 0;
  bool kept = false;  // the last record, or sequence
  for_each_record([&](const files::Line& line) {
    if (parser_.missing().policy == Missing::kSkip && parser_.lacks_value(line.text)) return true;
    const bool begins = key_ < 0 || begins_sequence(line);
    if (begins) kept = shard.has(all++);
    if (!kept) return true;
    if (begins && key_ >= 0) sequences_.begin(lines_.records());
    lines_.keep(line);
    return true;
  });
  sequences_.end(lines_.records());
}

// Finds the column of "sequence_by", and makes sequences of the slots that have a row for each record.
void Csv::find_sequences(const tn::Attributes& attributes) {
  const std::vector<std::string> names =
      attributes.has("per_sequence") ? attributes.texts("per_sequence") : std::vector<std::string>();
  if (!attributes.has("sequence_by")) {
    if (!names.empty()) throw tn::Failure(TN_INVALID, "per_sequence", "needs the attribute sequence_by");
    return;
  }
  const std::string key = attributes.text("sequence_by");
  std::vector<std::string> columns;
  for (const Column& column : parser_.columns) {
    if (column.name == key) key_ = static_cast<int64_t>(columns.size());
    columns.push_back(column.name);
  }
  if (key_ < 0)
    throw tn::Failure(TN_INVALID, "sequence_by",
                      "unknown column " + files::quoted(key) + "; known: " + files::listed(columns));
  std::vector<std::string> known;
  for (tn::ReaderSlot& slot : slots_) {
    known.push_back(slot.name);
    slot.storage = TN_RAGGED;
  }
  if (const int32_t own = parser_.columns[static_cast<size_t>(key_)].slot; own >= 0 && slots_[own].shape.empty())
    slots_[own].storage = TN_DENSE;
  for (const std::string& name : names) {
    const auto slot = std::find(known.begin(), known.end(), name);
    if (slot == known.end())
      throw tn::Failure(TN_INVALID, "per_sequence",
                        "unknown slot " + files::quoted(name) + "; known: " + files::listed(known));
    slots_[static_cast<size_t>(slot - known.begin())].storage = TN_DENSE;
  }
  rows_.resize(slots_.size());
}

// Whether the record is the first of its sequence.
bool Csv::begins_sequence(const files::Line& line) {
  files::Follows place{};
  parsing(line, [&] {
    const std::string text = parser_.split(line.text, parser_.columns.size())[static_cast<size_t>(key_)];
    const std::string column = "column " + files::quoted(parser_.columns[static_cast<size_t>(key_)].name) + ": ";
    if (parser_.missing().is_missing(text))
      throw BadRecord{column + "the value is missing, so its sequence is unknown"};
    place = sequences_.next(text);
    if (place == files::Follows::kOldSequence)
      throw BadRecord{column + "the records of " + files::quoted(text) + " do not follow one another"};
  });
  return place == files::Follows::kNewSequence;
}

void Csv::read(int64_t index, tn::Samples& to) {
  if (key_ >= 0) return read_sequence(index, to);
  const files::Line line = lines_.read(index);
  for (size_t slot = 0; slot < to_.size(); ++slot) to_[slot] = to.dense<uint8_t>(slot);
  parsing(line, [&] { parser_.parse(line.text, to_.data()); });
}

void Csv::read_sequence(int64_t index, tn::Samples& to) {
  const auto [begin, end] = sequences_.records(index);
  const auto bytes = [this](size_t slot) {  // of a row
    const tn::ReaderSlot& of = slots_[slot];
    return tn_dtype_bytes(of.dtype) * static_cast<size_t>(of.shape.empty() ? 1 : of.shape[0]);
  };
  for (size_t slot = 0; slot < to_.size(); ++slot) rows_[slot].resize(bytes(slot) * static_cast<size_t>(end - begin));
  for (int64_t i = begin; i < end; ++i) {
    for (size_t slot = 0; slot < to_.size(); ++slot)
      to_[slot] = rows_[slot].data() + bytes(slot) * static_cast<size_t>(i - begin);
    const files::Line line = lines_.read(i);
    parsing(line, [&] {
      parser_.parse(line.text, to_.data());
      for (size_t slot = 0; slot < to_.size(); ++slot)
        if (slots_[slot].storage == TN_DENSE && std::memcmp(to_[slot], rows_[slot].data(), bytes(slot)) != 0)
          throw BadRecord{"slot " + files::quoted(slots_[slot].name) +
                          ": differs from the first record of its sequence"};
    });
  }
  for (size_t slot = 0; slot < to_.size(); ++slot) {
    if (slots_[slot].storage == TN_DENSE)
      std::memcpy(to.dense<uint8_t>(slot), rows_[slot].data(), bytes(slot));
    else
      to.rows(slot, rows_[slot].data(), end - begin);
  }
}

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.csv", "0.1.0", "reads CSV files", "Apache-2.0");
  plugin.reader<Csv>();
}

}  // namespace

}  // namespace tenon::csv

const tn_plugin* tenon_plugin() { return tn::entry<tenon::csv::describe>(); }
