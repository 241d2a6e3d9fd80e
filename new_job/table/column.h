// What the texts of a column are like, gathered in bounded memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "new_job/table/date_forms.h"
#include "new_job/table/form.h"

namespace tenon::new_job {

// Whether a text means a missing value in most tables: "", "NA", "?" and so on.
[[nodiscard]] bool means_missing(std::string_view text);

// Numbers: their moments, and a sample of them for quantiles.
class NumberStatistics {
 public:
  void see(double number);
  int64_t count = 0;
  double low = 0, high = 0, mean = 0;
  bool all_whole = true;  // all are whole numbers
  bool counting = true;   // each is the one before plus 1
  [[nodiscard]] double deviation() const;
  // Sorted numbers, at most 4096, drawn from all with equal chances.
  [[nodiscard]] std::vector<double> sample() const;

 private:
  double squares_ = 0;  // of the differences from the mean
  double last_ = 0;
  std::vector<double> sample_;
};

// How often each text occurs, as long as there are not too many.
class TextCounts {
 public:
  explicit TextCounts(size_t most) : most_(most) {}
  void see(std::string_view text, int64_t count = 1);
  [[nodiscard]] bool overflowed() const { return overflowed_; }
  // Empty if it overflowed.
  [[nodiscard]] const std::unordered_map<std::string, int64_t>& counts() const { return counts_; }
  // Returns how many texts occur at least so often.
  [[nodiscard]] int64_t at_least(int64_t count) const;

 private:
  size_t most_, bytes_ = 0;
  bool overflowed_ = false;
  std::unordered_map<std::string, int64_t> counts_;
};

struct ColumnSummary {
  ColumnSummary(std::string column_name, size_t most_texts) : name(std::move(column_name)), texts(most_texts) {}

  void see(const std::string& text, const csv::NumberForm& form);
  // Returns the share of the texts that contain the separator.
  [[nodiscard]] double separated(char separator) const;
  [[nodiscard]] int64_t values() const { return numbers.count + others; }
  [[nodiscard]] double words_of_a_text() const;

  static constexpr char kSeparators[] = {'|', ';', ','};

  std::string name;
  int64_t missing = 0;
  NumberStatistics numbers;
  int64_t others = 0;          // values that are not numbers
  TextCounts texts;            // all values
  TextCounts other_texts{64};  // those that are not numbers
  DateForms dates;             // of the values that are not numbers
  std::map<std::string, int64_t> missing_texts;
  TextCounts words{200'000};  // of the texts, in small letters, as the type words cuts them; see count_words
  TextCounts parts{20'000};   // of the texts, cut at count_parts
  bool count_words = false;   // set before the first text
  char count_parts = '\0';    // set before the first text; '\0': not counted
  bool is_utf8 = true;

 private:
  void see_words(const std::string& text);
  void see_parts(const std::string& text);

  int64_t spaces_ = 0;
  std::array<int64_t, std::size(kSeparators)> separated_{};
  std::string room_;
};

}  // namespace tenon::new_job
