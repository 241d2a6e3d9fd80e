// SPDX-License-Identifier: Apache-2.0
#include "new_job/table/column.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "record.h"
#include "words.h"

namespace tenon::new_job {

namespace {

// Returns a number that follows from `index` like a random one: the function of SplitMix64 (Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", 2014).
uint64_t drawn(uint64_t index) {
  uint64_t z = (index + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

}  // namespace

bool means_missing(std::string_view text) {
  static constexpr std::string_view kTexts[] = {"",    "NA",  "N/A",  "n/a",  "#N/A", "<NA>",
                                                "NaN", "nan", "NULL", "null", "?",    "NaT"};
  return std::find(std::begin(kTexts), std::end(kTexts), text) != std::end(kTexts);
}

void NumberStatistics::see(double number) {
  constexpr size_t kMost = 4096;
  low = count == 0 ? number : std::min(low, number);
  high = count == 0 ? number : std::max(high, number);
  all_whole = all_whole && std::floor(number) == number;
  counting = counting && (count == 0 || number == last_ + 1);
  last_ = number;
  ++count;
  const double step = number - mean;
  mean += step / static_cast<double>(count);
  squares_ += step * (number - mean);
  // Reservoir sampling (Vitter, "Random sampling with a reservoir", 1985, algorithm R).
  if (sample_.size() < kMost)
    sample_.push_back(number);
  else if (const uint64_t place = drawn(static_cast<uint64_t>(count)) % static_cast<uint64_t>(count); place < kMost)
    sample_[place] = number;
}

double NumberStatistics::deviation() const { return count == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count)); }

std::vector<double> NumberStatistics::sample() const {
  std::vector<double> sorted = sample_;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

void TextCounts::see(std::string_view text, int64_t count) {
  constexpr size_t kMostBytes = 1 << 23;
  if (overflowed_) return;
  auto& occurrences = counts_[std::string(text)];
  if (occurrences == 0) bytes_ += text.size();
  occurrences += count;
  if (counts_.size() <= most_ && bytes_ <= kMostBytes) return;
  overflowed_ = true;
  counts_.clear();
}

int64_t TextCounts::at_least(int64_t count) const {
  return std::count_if(counts_.begin(), counts_.end(), [&](const auto& text) { return text.second >= count; });
}

void ColumnSummary::see(const std::string& text, const csv::NumberForm& form) {
  if (means_missing(text)) {
    ++missing;
    if (!text.empty()) ++missing_texts[text];
    return;
  }
  is_utf8 = is_utf8 && files::is_utf8(text);
  texts.see(text);
  double number = 0;
  if (is_number(text, form, room_, &number)) return numbers.see(number);
  ++others;
  other_texts.see(text);
  dates.see(text);
  spaces_ += std::count(text.begin(), text.end(), ' ');
  for (size_t i = 0; i < std::size(kSeparators); ++i) separated_[i] += text.find(kSeparators[i]) != std::string::npos;
  if (count_words) see_words(text);
  if (count_parts != '\0') see_parts(text);
}

double ColumnSummary::separated(char separator) const {
  const auto at = static_cast<size_t>(std::find(std::begin(kSeparators), std::end(kSeparators), separator) -
                                      std::begin(kSeparators));
  return others == 0 ? 0 : static_cast<double>(separated_.at(at)) / static_cast<double>(others);
}

double ColumnSummary::words_of_a_text() const {
  return others == 0 ? 0 : 1 + static_cast<double>(spaces_) / static_cast<double>(others);
}

void ColumnSummary::see_words(const std::string& text) {
  try {
    files::for_each_word(text, {true, files::Split::kWords}, room_,
                         [&](std::string_view word, auto&&...) { words.see(word); });
  } catch (const files::BadLine&) {  // not UTF-8, which is_utf8 says
  }
}

void ColumnSummary::see_parts(const std::string& text) {
  csv::for_each_value(text, std::string(1, count_parts), [&](std::string_view part) { parts.see(part); });
}

}  // namespace tenon::new_job
