// Assigns the columns of CSV files to slots: the attribute "columns". SPDX-License-Identifier: Apache-2.0
//
//   entry  = [slot "="] column {"," column} [":" type]
//   column = name | name ".." name | "*"       "..": a range, in the order of the file; "*": all columns not named
//   name   = characters except , : = * " and "..", without spaces at its ends, or any characters in double quotes
//   type   = f32 | f64 | i8 ... i64 | u8 ... u32, whole numbers also with "<" limit | category ["(" file ")"]
#pragma once

#include <cstdint>
#include <string>
#include <tenon/reader.hpp>
#include <vector>

namespace tenon::csv {

enum class Kind { kInferred, kFloat, kInteger, kCategory };

struct Type {
  Kind kind = Kind::kInferred;
  tn_dtype dtype = 0;
  int64_t limit = -1;      // whole numbers lie in [0, limit)
  std::string vocabulary;  // vocabulary file of a category; "": the texts of the data
};

struct SlotColumns {
  std::string name;
  std::vector<size_t> columns;  // numbers of columns in the file
  bool is_vector = false;       // the slot is a vector: several columns, a range or "*"
  bool rest = false;            // it takes all columns of the file that no other slot has
  Type type;
};

// Returns the slots of `entries` that are needed; without entries, one slot for each column. names: of the columns of
// the first file. A vector has the columns that a model was trained with, in their order, wherever they stand in the
// file. Throws tn::Failure on the attribute "columns".
std::vector<SlotColumns> slot_columns(const std::vector<std::string>& entries, const std::vector<std::string>& names,
                                      const tn::ReaderOpen& open);

}  // namespace tenon::csv
