// Parses a record into the memory of its slots. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "columns.h"
#include "encoding.h"
#include "fields.h"
#include "file.h"
#include "vocabulary.h"

namespace tenon::csv {

// Thrown for a faulty record. The catcher adds file and line.
struct BadRecord {
  std::string why;
};

// A column of the file, and its place in a slot.
struct Column {
  std::string name;
  int32_t slot = -1;          // -1: the column is not used
  uint64_t offset = 0;        // bytes, within a sample of the slot
  Type type;                  // not kInferred
  int64_t low = 0, high = 0;  // bounds of a whole number
  size_t vocabulary = 0;      // category: number in RecordParser::vocabularies
  int32_t absent = -1;        // category: the number of missing values; -1: they are an error
  int32_t unknown = -1;       // category: the number of texts not in the vocabulary; -1: they are an error
  int64_t sampled = 0;        // records from which the type was inferred; 0: it was declared
  std::string entry;          // if inferred: how an entry of "columns" for its slot begins, for messages
  bool joined = false;        // in a slot with others, which cannot be a category

  void set_type(const Type& resolved);
  // The advice of a message that `text` does not fit the inferred type: how to declare the type.
  [[nodiscard]] std::string advice(std::string_view text) const;
};

enum class Missing { kError, kValue, kSkip };

struct MissingRules {
  Missing policy = Missing::kError;
  double value = 0;
  std::vector<std::string> texts;  // that mean missing, like the empty text

  [[nodiscard]] bool is_missing(std::string_view text) const;
};

// Parses records by the columns of the file.
class RecordParser {
 public:
  RecordParser(char delimiter, files::Encoding encoding, MissingRules missing)
      : delimiter_(delimiter), encoding_(encoding), missing_(std::move(missing)) {}

  std::vector<Column> columns;
  std::vector<files::Vocabulary> vocabularies;

  [[nodiscard]] const MissingRules& missing() const { return missing_; }
  // The columns of the fields of a record, in the order of a file. The functions below take the number of a layout.
  std::vector<std::vector<size_t>> layouts;

  // The texts of all fields, trimmed, in UTF-8 if the file is sound. Throws BadRecord unless there are `count` of them
  // (0: any number).
  std::vector<std::string> split(std::string_view text, size_t count);
  // The same by column, "" for a column that the file lacks.
  std::vector<std::string> by_column(std::string_view text, size_t layout);
  // Whether a used field is missing. False for a damaged record, which parse refuses.
  bool lacks_value(std::string_view text, size_t layout);
  // To be called when columns and layouts are as they stay, before parse.
  void prepare();
  // Writes the used fields into the samples of the slots; throws BadRecord.
  void parse(std::string_view text, size_t layout, uint8_t* const* slots);
  // Throws tn::Failure unless missing_value can be stored in every column that it may fill.
  void check_missing_value() const;

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
  void put_text(const Column& column, std::string_view text, uint8_t* to) const;
  void put_missing(const Column& column, uint8_t* to) const;
  [[noreturn]] void fail_count(std::string_view text, size_t expected);

  // The text without blanks at its ends, in UTF-8. Valid until the next call.
  std::string_view utf8(std::string_view field) { return encoding_.utf8(trimmed(field, delimiter_), text_room_); }

  char delimiter_;
  files::Encoding encoding_;
  MissingRules missing_;
  std::vector<std::vector<Run>> runs_;  // of each layout: all fields
  std::string room_;                    // memory for a field with doubled quotes
  std::string text_room_;               // for a converted text
};

}  // namespace tenon::csv
