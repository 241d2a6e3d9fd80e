// How the records of a table are written: delimiter, header, encoding, form of numbers. Found from the first records of
// the first file. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "encoding.h"
#include "lines.h"
#include "number_form.h"

namespace tenon::new_job {

struct Form {
  char delimiter = ',';
  bool header = true;
  bool latin1 = false;
  char decimal = '.';
  std::string thousands;                // "": none
  std::vector<std::string> names = {};  // of the columns

  [[nodiscard]] csv::NumberForm numbers() const { return {decimal, thousands}; }
};

// Cuts records into fields.
class Splitter {
 public:
  explicit Splitter(const Form& form) : delimiter_(form.delimiter), encoding_(form.latin1) {}
  // Sets `fields` to the texts of the record, trimmed and in UTF-8 if the file is sound. Returns why the record is
  // malformed, or null. record: with files::kPadding bytes behind it.
  const char* split(std::string_view record, std::vector<std::string>& fields);

 private:
  char delimiter_;
  files::Encoding encoding_;
  std::string quote_room_, text_room_;
};

// Whether the text is a finite number in this form. value: the number.
[[nodiscard]] bool is_number(std::string_view text, const csv::NumberForm& form, std::string& room, double* value);

// Looks at the first records of the file. target: a column, which only a header can name; "": unknown. Throws
// tn::Failure.
[[nodiscard]] Form form_of(files::Lines& lines, const std::string& target);

// Opens files with the limits of the reader csv.
[[nodiscard]] files::Lines open_lines(const std::vector<std::string>& paths);

}  // namespace tenon::new_job
