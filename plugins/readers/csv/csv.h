// The reader "csv": records of fields with delimiters, RFC 4180. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <tenon/draft/records.hpp>
#include <utility>
#include <vector>

#include "lines.h"
#include "record.h"
#include "record_numbers.h"
#include "sequences.h"
#include "windows.h"

namespace tenon::csv {

class Csv : public tn::Records<Csv> {
 public:
  static void describe(tn::ReaderDescription& d);
  explicit Csv(const tn::ReaderOpen& open);

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return windows_ ? window_slots_ : slots_; }
  [[nodiscard]] int64_t samples() const {
    if (windows_) return windows_->samples();
    return in_sequences_ ? sequences_.count() : lines_.records();
  }
  void read(int64_t index, tn::Samples& to);
  void ahead(int64_t index) const { lines_.ahead(line_of(index)); }
  [[nodiscard]] int64_t records() const { return numbers_.count(); }
  [[nodiscard]] int64_t record(int64_t index) const {
    return windows_ ? windows_->record(index) : numbers_.of(shard_.sample(index));
  }
  [[nodiscard]] std::string_view text(int64_t index, const std::string& column);

 private:
  // The line of a sample, the first one of its sequence, or the last one of its window.
  [[nodiscard]] int64_t line_of(int64_t index) const {
    if (windows_) return windows_->row(index);
    return in_sequences_ ? sequences_.records(index).first : index;
  }
  // Whether the line is no record. Between sentences, and where blanks separate fields, it may have blanks.
  [[nodiscard]] bool is_empty(const files::Line& line) const {
    return line.text.empty() || ((sentences_ || parser_.blanks_separate()) && trimmed(line.text, '\0').empty());
  }
  [[nodiscard]] std::vector<std::string> header_of(size_t file);
  [[nodiscard]] std::vector<std::string> names_of(size_t file, const tn::ReaderOpen& open);
  [[nodiscard]] static bool lacks_labels(const std::vector<std::string>& names, size_t count,
                                         const tn::ReaderOpen& open);
  void find_columns(const tn::ReaderOpen& open);
  void add_layout(const std::vector<std::string>& names);
  void use_layout(size_t file, std::vector<size_t> layout);
  void find_trailing_fields();
  void check_layouts(bool all) const;
  void check_line_end(const files::Line& line);
  void check_header(const files::Line& line, const std::vector<std::string>& names);
  std::vector<SlotColumns> inferred(std::vector<SlotColumns> slots, const tn::ReaderOpen& open);
  void add_slot(const SlotColumns& slot);
  void treat_missing(const SlotColumns& slot);
  void find_fills(const std::vector<SlotColumns>& slots);
  void name_elements(const SlotColumns& slot);
  std::vector<SlotColumns> needed_slots(const tn::ReaderOpen& open);
  void warn(const tn::ReaderOpen& open, const std::string& message) const;
  void check_names(const tn::ReaderOpen& open);
  [[nodiscard]] std::string hint_of_delimiter(const std::string& field) const;
  [[nodiscard]] std::string hint_of_title(const std::string& field);
  void find_vocabularies(const std::vector<SlotColumns>& slots, const tn::ReaderOpen& open);
  void build_vocabularies(const std::vector<size_t>& columns);
  void use_vocabulary(Column& column, bool unknown);
  void save_vocabularies(const tn::ReaderOpen& open) const;
  void index(const tn::ReaderOpen& open);
  void find_windows(const tn::ReaderOpen& open);
  void add_row_of_windows(const files::Line& line);
  void find_sequences(const tn::ReaderOpen& open);
  bool begins_sequence(const files::Line& line);
  bool begins_key(const files::Line& line);
  void end_sentence();
  void leave_out(const files::Line& line);
  void read_sequence(int64_t index, tn::Samples& to);
  void add_row(size_t slot, bool first);
  [[nodiscard]] uint64_t row_bytes(size_t slot) const;
  // Calls each(line) for the records, without headers, until it returns false, and blank(line) for empty lines and
  // comments among them.
  template <typename Each, typename Blank>
  void for_each_record(const Each& each, const Blank& blank);
  template <typename Each>
  void for_each_record(const Each& each) {
    for_each_record(each, [](const files::Line&) {});
  }
  template <typename Work>
  void parsing(const files::Line& line, const Work& work);

  files::Lines lines_;
  tn::Shard shard_;
  bool header_;
  RecordParser parser_;
  std::vector<tn::ReaderSlot> slots_;
  std::optional<Windows> windows_;
  std::vector<tn::ReaderSlot> window_slots_;  // of their samples; slots_ are those of a row
  std::vector<uint8_t*> to_;                  // of each slot
  std::vector<bool> is_list_;                 // of each slot: a record has a sequence of values
  std::deque<std::vector<std::string>> element_names_;
  std::string header_hint_;    // what ends messages about unknown columns
  bool in_sequences_ = false;  // samples are sequences of records
  bool sentences_;             // which end at blank lines
  int64_t key_ = -1;           // or have one value of the column of this number; -1: none
  files::Sequences<std::string> sequences_;
  files::RecordNumbers numbers_;            // of the samples
  std::vector<size_t> layout_of_;           // of each file: a number in RecordParser::layouts
  size_t first_columns_ = 0;                // columns of the first file, the first of all columns
  std::optional<std::string> pending_;      // the key of records that were left out, whose sequence has no others yet
  bool fresh_ = true;                       // the next record begins a sentence
  std::string text_;                        // what text returned
  std::vector<std::vector<uint8_t>> rows_;  // of each slot: the records of the sequence that is read
  std::vector<std::vector<int64_t>> lengths_;  // of the lists among them
};

template <typename Each, typename Blank>
void Csv::for_each_record(const Each& each, const Blank& blank) {
  bool more = true;
  for (size_t file = 0; file < lines_.files() && more; ++file) {
    bool first = true;
    lines_.for_each_of(file, [&](const files::Line& line) {
      const bool empty = is_empty(line);
      const bool heads = std::exchange(first, first && empty) && header_;
      if (empty && !heads) blank(line);
      if (empty || heads) return true;
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

}  // namespace tenon::csv
