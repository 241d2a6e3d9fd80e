// Which columns of a CSV file make which slots: the attribute "columns". SPDX-License-Identifier: Apache-2.0
//
//   entry  = [slot "="] column {"," column} [":" type]
//   column = name | name ".." name | "*"       a range, in the order of the file; all columns that no entry names
//   name   = characters but , : = . * " and spaces at its ends, or any characters in double quotes
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
  std::string vocabulary;  // file of a category; "": the values in the data
};

struct SlotColumns {
  std::string name;
  std::vector<size_t> columns;  // numbers in the file
  bool is_vector = false;       // more than one column, or may be
  Type type;
};

// Throws tn::Failure on the attribute "columns". `names` are those of the file's columns. No entries: a slot for each.
std::vector<SlotColumns> slot_columns(const std::vector<std::string>& entries, const std::vector<std::string>& names,
                                      const volatile int32_t* cancel);

}  // namespace tenon::csv
