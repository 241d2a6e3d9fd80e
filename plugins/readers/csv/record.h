// Parses a record into the memory of its slots. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "columns.h"
#include "delimiter.h"
#include "encoding.h"
#include "fields.h"
#include "file.h"
#include "number_form.h"
#include "vocabulary.h"

namespace tenon::csv {

// A column of the file, and its place in a slot.
struct Column {
  std::string name;
  bool trailing = false;      // the empty field behind the last column
  int32_t slot = -1;          // -1: the column is not used
  uint64_t offset = 0;        // bytes, within a sample of the slot
  Type type;                  // not kInferred
  int64_t low = 0, high = 0;  // bounds of a whole number
  size_t vocabulary = 0;      // category: number in RecordParser::vocabularies
  Missing missing = Missing::kError;
  bool own_fill = false;  // `fill` is of this column, not of the reader
  double fill = 0;        // numbers: stands for missing values
  int64_t flag = -1;      // bytes, within a sample of the slot: of the indicator of missing values; -1: none
  int32_t absent = -1;    // category: the number of missing values; -1: they are an error
  int32_t unknown = -1;   // category: the number of texts not in the vocabulary; -1: they are an error
  int64_t sampled = 0;    // records from which the type was inferred; 0: it was declared
  std::string entry;      // if inferred: how an entry of "columns" for its slot begins, for messages
  bool joined = false;    // in a slot with others, which cannot be a category
  std::string fill_text;  // category: stands for missing values; "": they have a number of their own

  void set_type(const Type& resolved);
  // The advice of a message that `text` does not fit the inferred type: how to declare the type. digits: the text as a
  // number.
  [[nodiscard]] std::string advice(std::string_view text, std::string_view digits) const;
};

struct MissingRules {
  Missing policy = Missing::kError;
  double value = 0;
  std::vector<std::string> texts;  // that mean missing, like the empty text

  [[nodiscard]] bool is_missing(std::string_view text) const;
};

// Parses records by the columns of the file.
class RecordParser {
 public:
  RecordParser(Delimiter delimiter, files::Encoding encoding, NumberForm form, MissingRules missing)
      : delimiter_(std::move(delimiter)), encoding_(encoding), form_(std::move(form)), missing_(std::move(missing)) {}

  std::vector<Column> columns;
  std::vector<files::Vocabulary> vocabularies;
  std::vector<std::vector<uint8_t>> lists;  // of each slot of sequences: the values of the last record

  [[nodiscard]] char delimiter() const { return delimiter_.sign(); }
  [[nodiscard]] bool blanks_separate() const { return delimiter_.blanks(); }
  [[nodiscard]] const NumberForm& form() const { return form_; }
  [[nodiscard]] const MissingRules& missing() const { return missing_; }
  // The columns of the fields of a record, in the order of a file. The functions below take the number of a layout.
  std::vector<std::vector<size_t>> layouts;

  // The texts of all fields, trimmed, in UTF-8 if the file is sound. Throws BadRecord unless there are `count` of them
  // (0: any number).
  std::vector<std::string> split(std::string_view text, size_t count);
  // The same by column, "" for a column that the file lacks.
  std::vector<std::string> by_column(std::string_view text, size_t layout);
  // Whether the record is left out, since the value of a column with Missing::kSkip is missing. False for a damaged
  // record, which parse refuses.
  bool leaves_out(std::string_view text, size_t layout);
  // To be called when columns and layouts are as they stay, before parse.
  void prepare();
  // Writes the used fields into the samples of the slots; throws BadRecord.
  void parse(std::string_view text, size_t layout, uint8_t* const* slots);
  // The number of a field, as it is stored; throws BadRecord.
  double number(const Column& column, std::string_view text);
  // Throws tn::Failure unless the numbers that stand for missing values can be stored in their columns.
  void check_fills() const;

 private:
  // Consecutive fields of one slot and type.
  struct Run {
    size_t first, end;  // fields
    size_t (RecordParser::*quickly)(const Column& column, const Run& run, size_t field, Fields& fields, uint8_t* to);
    size_t all;  // fields of the record
  };

  // Parses fields of the run, `field` first, as long as Read::read can. Returns the first field that it cannot read, to
  // which it moves, or run.end. column, to: of the first field of the run.
  template <typename Read>
  size_t parse_quickly(const Column& column, const Run& run, size_t field, Fields& fields, uint8_t* to);
  void prepare(const std::vector<size_t>& layout, std::vector<Run>& runs) const;
  void parse_slowly(const Column& column, Fields& fields, uint8_t* to);
  void put_field(const Column& column, std::string_view text, uint8_t* to);
  void put_list(const Column& column, std::string_view text, uint8_t* to);
  void put_words(const Column& column, std::string_view text);
  void put_set(const Column& column, std::string_view text, uint8_t* to);
  void put_text(const Column& column, std::string_view text, uint8_t* to);
  void put_number(const Column& column, std::string_view text, uint8_t* to);
  void put_date(const Column& column, std::string_view text, uint8_t* to) const;
  void put_missing(const Column& column, uint8_t* to) const;
  // The fields of a record.
  Fields fields_of(std::string_view text) {
    return {delimiter_.plain(text, record_room_), delimiter_.sign(), delimiter_.quotes()};
  }
  std::vector<std::string> texts_of(Fields fields);
  // record: as delimiter_.plain returns it.
  [[noreturn]] void fail_count(std::string_view record, size_t expected);

  // The text without blanks at its ends, in UTF-8. Valid until the next call.
  std::string_view utf8(std::string_view field) {
    return encoding_.utf8(trimmed(field, delimiter_.sign()), text_room_);
  }

  Delimiter delimiter_;
  files::Encoding encoding_;
  NumberForm form_;
  MissingRules missing_;
  std::vector<std::vector<Run>> runs_;  // of each layout: all fields
  std::vector<const Column*> flags_;    // columns with indicators
  std::string record_room_;             // for a record with another delimiter than one character
  std::string room_;                    // for a field with doubled quotes
  std::string text_room_;               // for a converted text
  std::string digits_room_;             // for a number in another form
  std::string word_room_;
};

// Calls each(value) for the values of a list; separator "": for the text.
template <typename Each>
void for_each_value(std::string_view text, std::string_view separator, const Each& each) {
  if (separator.empty()) return each(text);
  const bool blanks = separator == " ";  // any number of them
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(separator, from), text.size());
    const std::string_view value = trimmed(text.substr(from, end - from), '\0');
    if (!blanks || !value.empty()) each(value);
    from = end + separator.size();
  }
}

// Calls each(word, gram) for the words and n-grams of a text; throws BadRecord.
void for_each_word(const Column& column, std::string_view text, std::string& room,
                   const std::function<void(std::string_view, bool gram)>& each);

}  // namespace tenon::csv
