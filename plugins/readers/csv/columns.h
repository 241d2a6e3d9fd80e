// Assigns the columns of CSV files to slots: the attribute "columns". SPDX-License-Identifier: Apache-2.0
//
//   entry  = [slot "="] column {"," column} [":" [type] {option}]
//   column = name | name ".." name | "*"       "..": a range, in the order of the file; "*": all columns not named
//   name   = characters except , : = * " and "..", without spaces at its ends, or any characters in double quotes
//   type   = f32 | f64 | i8 ... i64 | u8 ... u32, whole numbers also with "<" limit | category ["(" file ")"] |
//            date ["(" format ")"] {part} | words ["(" file ")"] | characters ["(" file ")"]
//   option = "missing" (error | skip | value | mean | median | frequent | number | text in double quotes) |
//            "indicator" | "list" ["(" separator ")"] | "size" number | "lower" | "most" number | "least" number |
//            "grams" number | "buckets" number | "multihot" | "chunks"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tenon/reader.hpp>
#include <vector>

#include "dates.h"

namespace tenon::csv {

enum class Kind { kInferred, kFloat, kInteger, kCategory, kDate, kWords, kCharacters };

struct Type {
  Kind kind = Kind::kInferred;
  tn_dtype dtype = 0;
  int64_t limit = -1;      // whole numbers lie in [0, limit)
  std::string vocabulary;  // vocabulary file of a category or text; "": the texts of the data

  std::string format = {};           // of a date; "": ISO 8601
  std::vector<DatePart> parts = {};  // of a date; empty: seconds since 1970
  std::string separator = {};        // a field is a list of values with this text between them; "": it is one value
  int64_t size = 0;                  // of a list: the number of its values; 0: any
  bool lower_case = false;           // of a text
  int64_t grams = 1, buckets = 0;    // of a text: see files::WordRules
  int64_t most_words = 0, least_count = 1;  // of a vocabulary of texts that are counted; 0: any number
  bool multi_hot = false;                   // a number for each category: 1 if the field has it, else 0
  bool chunks = false;                      // categories are tags of chunks, numbered as the metric chunk_f1 does

  [[nodiscard]] bool is_text() const { return kind == Kind::kWords || kind == Kind::kCharacters; }
  // Whether a field is a sequence of values.
  [[nodiscard]] bool is_ragged() const { return is_text() || (!separator.empty() && size == 0 && !multi_hot); }
  // Whether rare texts are left out of the vocabulary.
  [[nodiscard]] bool is_counted() const { return most_words > 0 || least_count > 1; }
  // The values of a field.
  [[nodiscard]] size_t values() const {
    if (size > 0) return static_cast<size_t>(size);
    return parts.empty() ? 1 : parts.size();
  }
};

// What a column makes of missing values.
enum class Missing { kError, kValue, kSkip, kMean, kMedian, kFrequent };

struct Treatment {
  std::optional<Missing> policy;    // none: that of the reader
  std::optional<std::string> text;  // of kValue: the number or category that stands for them; none: as of the reader
  bool indicator = false;           // numbers behind the values say which are missing

  // Whether the number that stands for missing values is derived from the data.
  [[nodiscard]] bool is_derived() const { return policy && *policy >= Missing::kMean; }
};

struct SlotColumns {
  std::string name;
  std::vector<size_t> columns;  // numbers of columns in the file
  bool is_vector = false;       // the slot is a vector: several columns, a range or "*"
  bool rest = false;            // it takes all columns of the file that no other slot has
  Type type;
  Treatment treatment = {};
  std::vector<double> fills = {};  // by column: what stands for missing values in a model; empty: unknown

  // Whether a sample, or a row, has a dimension.
  [[nodiscard]] bool has_dimension() const {
    const bool derived = treatment.is_derived() && type.kind != Kind::kCategory;
    return is_vector || treatment.indicator || derived || type.size > 0 || !type.parts.empty();
  }
};

// Returns the slots of `entries` that are needed; without entries, one slot for each column. names: of the columns of
// the first file. A vector has the columns that a model was trained with, in their order, wherever they stand in the
// file. all: returns those that are not needed, too. Throws tn::Failure on the attribute "columns".
std::vector<SlotColumns> slot_columns(const std::vector<std::string>& entries, const std::vector<std::string>& names,
                                      const tn::ReaderOpen& open, bool all);

}  // namespace tenon::csv
