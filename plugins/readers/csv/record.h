// Turns the text of a record into the memory of its slots. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "columns.h"
#include "fields.h"
#include "file.h"
#include "vocabulary.h"

namespace tenon::csv {

// What is wrong with a record, without its place.
struct BadRecord {
  std::string why;
};

struct Column {
  std::string name;
  int32_t slot = -1;          // -1: the column is not used
  uint64_t offset = 0;        // bytes, within a sample of the slot
  Type type;                  // resolved: nothing is inferred any more
  int64_t low = 0, high = 0;  // what a whole number may be
  size_t vocabulary = 0;      // of a category
  int32_t absent = -1;        // of a category: the number of what is missing; -1: that is an error
  int32_t unknown = -1;       // the same for what its vocabulary lacks
  int64_t sampled = 0;        // records its type was inferred from; 0: it was declared
  std::string entry;          // how an entry for its slot begins, unless it was declared
  bool joined = false;        // with others in a slot, which then is no category

  void set_type(const Type& resolved);
  // How to declare its type, where `text` does not fit what was inferred.
  [[nodiscard]] std::string advice(std::string_view text) const;
};

enum class Missing { kError, kValue, kSkip };

struct MissingRules {
  Missing policy = Missing::kError;
  double value = 0;
  std::vector<std::string> texts;  // which mean missing, as the empty text does

  [[nodiscard]] bool is_missing(std::string_view text) const;
};

class RecordParser {
 public:
  RecordParser(char delimiter, MissingRules missing) : delimiter_(delimiter), missing_(std::move(missing)) {}

  std::vector<Column> columns;
  std::vector<files::Vocabulary> vocabularies;

  [[nodiscard]] const MissingRules& missing() const { return missing_; }
  // The texts of all fields, trimmed; throws BadRecord unless there are `count` of them, or any where count is 0.
  std::vector<std::string> split(std::string_view text, size_t count);
  // Whether a field that is used is missing. False when the record is damaged: whoever reads it will say how.
  bool lacks_value(std::string_view text);
  // Writes the used fields into the samples of the slots; throws BadRecord.
  void parse(std::string_view text, uint8_t* const* slots);
  // Throws tn::Failure unless the value for what is missing can be stored in every column it fills.
  void check_missing_value() const;

 private:
  void parse_slowly(const Column& column, Fields& fields, uint8_t* to);
  void put_missing(const Column& column, uint8_t* to) const;
  [[noreturn]] void fail_count(std::string_view text, size_t expected);

  char delimiter_;
  MissingRules missing_;
  std::string room_;  // of a field whose quotes were doubled
};

}  // namespace tenon::csv
