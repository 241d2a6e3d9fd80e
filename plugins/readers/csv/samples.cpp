// The samples of the reader "csv": records, or sequences of records. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "csv.h"

namespace tenon::csv {

void Csv::index(const tn::ReaderOpen& open) {
  const tn::Shard shard = open.shard();
  int64_t all = 0;
  size_t file = 0;
  bool kept = false;  // the last record, or sequence
  const auto each = [&](const files::Line& line) {
    if (sentences_ && std::exchange(file, line.file) != line.file) end_sentence();
    if (parser_.leaves_out(line.text, layout_of_[line.file])) {
      leave_out(line);
      return true;
    }
    if (windows_) {
      add_row_of_windows(line);
      return true;
    }
    const bool begins = !in_sequences_ || begins_sequence(line);
    if (begins) numbers_.add_samples(1);
    if (begins) kept = shard.has(all++);
    if (!kept) return true;
    if (begins && in_sequences_) sequences_.begin(lines_.records());
    lines_.keep(line);
    return true;
  };
  for_each_record(each, [this](const files::Line& line) {
    if (!in_sequences_) numbers_.leave_out();
    if (sentences_ && !line.comment) end_sentence();
  });
  if (pending_) numbers_.leave_out();
  sequences_.end(lines_.records());
  if (windows_) find_windows(open);
}

void Csv::find_windows(const tn::ReaderOpen& open) {
  const auto fail = [this](int64_t row, const std::string& why) { throw lines_.failure(lines_.read(row), why); };
  const std::string fault = windows_->finish(open.shard(), fail);
  if (!fault.empty()) warn(open, fault);
}

void Csv::add_row_of_windows(const files::Line& line) {
  const size_t layout = layout_of_[line.file];
  parsing(line, [&] {
    windows_->add(numbers_.count(), parser_.by_column(line.text, layout), to_);
    parser_.parse(line.text, layout, to_.data());
  });
  numbers_.add_samples(1);
  lines_.keep(line);
}

// Counts a sentence of which all records were left out.
void Csv::end_sentence() {
  if (pending_) numbers_.leave_out();
  pending_.reset();
  fresh_ = true;
}

// Counts a record that is left out, or its sequence unless that has other records.
void Csv::leave_out(const files::Line& line) {
  if (!in_sequences_) return numbers_.leave_out();
  if (sentences_) {
    if (fresh_) pending_.emplace();
    return;
  }
  std::vector<std::string> texts;
  parsing(line, [&] { texts = parser_.by_column(line.text, layout_of_[line.file]); });
  std::string& key = texts[static_cast<size_t>(key_)];
  if (sequences_.is_last(key) || key == pending_) return;
  if (pending_) numbers_.leave_out();
  pending_ = std::move(key);
}

std::string_view Csv::text(int64_t index, const std::string& column) {
  size_t number = 0;
  while (number < parser_.columns.size() && parser_.columns[number].name != column) ++number;
  if (number == parser_.columns.size()) {
    std::vector<std::string> known;
    for (const Column& each : parser_.columns)
      if (!each.trailing) known.push_back(each.name);
    throw tn::Failure(TN_NOT_FOUND, column,
                      "the data has no column " + files::quoted(column) + "; known: " + files::listed(known));
  }
  const int64_t first = line_of(index);
  const int64_t last = sentences_ ? sequences_.records(index).second : first + 1;
  text_.clear();
  for (int64_t record = first; record < last; ++record) {
    const files::Line line = lines_.read(record);
    const std::vector<size_t>& layout = parser_.layouts[layout_of_[line.file]];
    if (std::find(layout.begin(), layout.end(), number) == layout.end())  // another of the files has it
      throw lines_.failure(line, "the file has no column " + files::quoted(column));
    if (record > first) text_ += ' ';
    parsing(line, [&] { text_ += parser_.by_column(line.text, layout_of_[line.file])[number]; });
  }
  return text_;
}

// Finds the column of "sequence_by", and makes sequences of the slots that have a row for each record.
void Csv::find_sequences(const tn::ReaderOpen& open) {
  const tn::Attributes attributes = open.attributes();
  const std::vector<std::string> names =
      attributes.has("per_sequence") ? attributes.texts("per_sequence") : std::vector<std::string>();
  const bool by_key = attributes.has("sequence_by");
  in_sequences_ = by_key || sentences_;
  if (!in_sequences_) {
    if (!names.empty()) throw tn::Failure(TN_INVALID, "per_sequence", "needs the attribute sequence_by or sentences");
    return;
  }
  if (by_key && sentences_)
    throw tn::Failure(TN_INVALID, "sentences", "sequence_by says already which records are one sample");
  const std::string key = by_key ? attributes.text("sequence_by") : std::string();
  std::vector<std::string> columns;
  for (const Column& column : parser_.columns) {
    if (by_key && column.name == key) key_ = static_cast<int64_t>(columns.size());
    columns.push_back(column.name);
  }
  if (by_key && key_ < 0)
    throw tn::Failure(TN_INVALID, "sequence_by",
                      "unknown column " + files::quoted(key) + "; known: " + files::listed(columns));
  std::vector<std::string> known;
  for (tn::ReaderSlot& slot : slots_) {
    known.push_back(slot.name);
    slot.levels = slot.storage == TN_RAGGED ? 2 : 1;
    slot.storage = TN_RAGGED;
  }
  const auto one_for_all = [this](size_t slot) {
    if (slots_[slot].levels == 1) slots_[slot].storage = TN_DENSE;
    slots_[slot].levels = 1;
  };
  const int32_t own = by_key ? parser_.columns[static_cast<size_t>(key_)].slot : -1;
  if (own >= 0 && slots_[static_cast<size_t>(own)].shape.empty()) one_for_all(static_cast<size_t>(own));
  for (const std::string& name : names) {
    const auto slot = std::find(known.begin(), known.end(), name);
    if (slot == known.end() && !open.needed(name)) continue;
    if (slot == known.end())
      throw tn::Failure(TN_INVALID, "per_sequence",
                        "unknown slot " + files::quoted(name) + "; known: " + files::listed(known));
    if (slots_[static_cast<size_t>(slot - known.begin())].storage == TN_RAGGED)
      one_for_all(static_cast<size_t>(slot - known.begin()));
  }
  rows_.resize(slots_.size());
  lengths_.resize(slots_.size());
}

// Whether the record is the first of its sequence.
bool Csv::begins_sequence(const files::Line& line) {
  if (!sentences_) return begins_key(line);
  pending_.reset();
  return std::exchange(fresh_, false);
}

// The same for sequences whose records have one value of a column.
bool Csv::begins_key(const files::Line& line) {
  files::Follows place{};
  parsing(line, [&] {
    const std::string text = parser_.by_column(line.text, layout_of_[line.file])[static_cast<size_t>(key_)];
    const std::string column = "column " + files::quoted(parser_.columns[static_cast<size_t>(key_)].name) + ": ";
    if (parser_.missing().is_missing(text))
      throw BadRecord{column + "the value is missing, so its sequence is unknown"};
    if (pending_ && text != pending_ && !sequences_.is_last(text)) numbers_.leave_out();
    if (!sequences_.is_last(text)) pending_.reset();
    place = sequences_.next(text);
    if (place == files::Follows::kOldSequence)
      throw BadRecord{column + "the records of " + files::quoted(text) + " do not follow one another"};
  });
  return place == files::Follows::kNewSequence;
}

uint64_t Csv::row_bytes(size_t slot) const {
  const tn::ReaderSlot& of = slots_[slot];
  return tn_dtype_bytes(of.dtype) * static_cast<uint64_t>(of.shape.empty() ? 1 : of.shape[0]);
}

void Csv::read(int64_t index, tn::Samples& to) {
  if (windows_) return windows_->read(index, to);
  if (in_sequences_) return read_sequence(index, to);
  const files::Line line = lines_.read(index);
  for (size_t slot = 0; slot < to_.size(); ++slot) to_[slot] = is_list_[slot] ? nullptr : to.dense<uint8_t>(slot);
  parsing(line, [&] { parser_.parse(line.text, layout_of_[line.file], to_.data()); });
  for (size_t slot = 0; slot < to_.size(); ++slot) {
    const std::vector<uint8_t>& list = parser_.lists[slot];
    if (is_list_[slot]) to.rows(slot, list.data(), static_cast<int64_t>(list.size() / row_bytes(slot)));
  }
}

void Csv::read_sequence(int64_t index, tn::Samples& to) {
  const auto records = sequences_.records(index);
  const int64_t begin = records.first, end = records.second;
  for (size_t slot = 0; slot < to_.size(); ++slot) {
    rows_[slot].resize(is_list_[slot] ? 0 : row_bytes(slot) * static_cast<uint64_t>(end - begin));
    lengths_[slot].clear();
  }
  for (int64_t i = begin; i < end; ++i) {
    for (size_t slot = 0; slot < to_.size(); ++slot)
      to_[slot] = is_list_[slot] ? nullptr : rows_[slot].data() + row_bytes(slot) * static_cast<uint64_t>(i - begin);
    const files::Line line = lines_.read(i);
    parsing(line, [&] {
      parser_.parse(line.text, layout_of_[line.file], to_.data());
      for (size_t slot = 0; slot < to_.size(); ++slot) add_row(slot, i == begin);
    });
  }
  for (size_t slot = 0; slot < to_.size(); ++slot) {
    const auto lists = static_cast<int64_t>(lengths_[slot].size());
    if (slots_[slot].storage == TN_DENSE)
      std::memcpy(to.dense<uint8_t>(slot), rows_[slot].data(), row_bytes(slot));
    else if (is_list_[slot] && slots_[slot].levels == 2)
      to.sequences(slot, rows_[slot].data(), lengths_[slot].data(), lists);
    else
      to.rows(slot, rows_[slot].data(), is_list_[slot] ? lengths_[slot].front() : end - begin);
  }
}

// Takes the list of a record into its sequence, or checks that the record has the one value of its sequence.
void Csv::add_row(size_t slot, bool first) {
  const std::vector<uint8_t>& list = parser_.lists[slot];
  std::vector<uint8_t>& rows = rows_[slot];
  const bool one = slots_[slot].storage == TN_DENSE || (is_list_[slot] && slots_[slot].levels == 1);
  const bool same =
      !one || first || (is_list_[slot] ? list == rows : std::memcmp(to_[slot], rows.data(), row_bytes(slot)) == 0);
  if (!same)
    throw BadRecord{"slot " + files::quoted(slots_[slot].name) + ": differs from the first record of its sequence"};
  if (!is_list_[slot] || (one && !first)) return;
  rows.insert(rows.end(), list.begin(), list.end());
  lengths_[slot].push_back(static_cast<int64_t>(list.size() / row_bytes(slot)));
}

}  // namespace tenon::csv
