// Windows of rows that follow one another in time, for forecasts: the attributes "window", "horizon", "targets" and
// others. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tenon/reader.hpp>
#include <unordered_map>
#include <vector>

#include "file.h"
#include "record.h"
#include "row_time.h"

namespace tenon::csv {

// All rows of a table, in memory as the parser writes them, and the windows over them. The rows of a group have places:
// 0, 1 and so on, with gaps where times are missing.
class Windows {
 public:
  static void describe(tn::ReaderDescription& d);
  // Whether samples are windows; throws tn::Failure on an attribute that only windows have.
  static bool is_used(const tn::Attributes& attributes);

  // names: of the columns. Throws tn::Failure on an attribute.
  Windows(const std::vector<std::string>& names, const tn::ReaderOpen& open);

  // With masks, lets values be missing that would be errors. Call it before vocabularies are built.
  void permit_missing(RecordParser& parser) const;
  // Lays out a row for the parser, whose slots are `rows`. Call it before parser.prepare. Returns the slots of samples.
  std::vector<tn::ReaderSlot> prepare(RecordParser& parser, const std::vector<tn::ReaderSlot>& rows,
                                      const tn::ReaderOpen& open);

  // Adds a row, record number `record` of the data, in the order of the data. texts: by column. Sets to[slot] to where
  // the parser writes, until the next call. Throws BadRecord.
  void add(int64_t record, const std::vector<std::string>& texts, std::vector<uint8_t*>& to);
  // Call it once, after all rows: finds the windows of a shard. Calls fail(row, why) for a row without a place. Returns
  // why there is no window, also in another shard; "" if there is one, or no row.
  std::string finish(const tn::Shard& shard, const std::function<void(int64_t row, const std::string& why)>& fail);

  [[nodiscard]] int64_t samples() const { return static_cast<int64_t>(ends_.size()); }
  // The number of the last row of a window, as rows were added; the record that it is.
  [[nodiscard]] int64_t row(int64_t sample) const {
    return static_cast<int64_t>(order_[ends_[static_cast<size_t>(sample)]]);
  }
  [[nodiscard]] int64_t record(int64_t sample) const { return rows_[static_cast<size_t>(row(sample))].record; }
  void read(int64_t sample, tn::Samples& to) const;

 private:
  struct Row {
    int64_t record = 0;
    size_t group = 0;
    double time = 0;
    int64_t place = 0;  // in its group
  };
  // Bytes of each row that a slot of samples has, and the flags of its columns that are missing: offsets in a row.
  struct Part {
    uint64_t begin = 0, bytes = 0;
    std::vector<uint64_t> flags = {};
    uint32_t width = 0;  // bytes of an element, and of a flag
  };
  // A slot of samples.
  struct Selection {
    std::vector<Part> parts;  // one behind the other in each row
    bool ahead = false;       // rows behind the window, not those in it
    bool mask = false;        // 1 for each column of a row that is there, else 0
  };

  // rank: of a row, in the order of groups and times.
  [[nodiscard]] const Row& at(size_t rank) const { return rows_[order_[rank]]; }
  void add_targets(const RecordParser& parser, const std::vector<tn::ReaderSlot>& rows, const tn::ReaderOpen& open,
                   std::vector<tn::ReaderSlot>& slots);
  void add_slot(const tn::ReaderSlot& slot, Selection selection, const std::vector<int64_t>& row_shape, size_t columns,
                std::vector<tn::ReaderSlot>& slots);
  [[nodiscard]] bool ends_window(size_t rank, size_t first, size_t last) const;
  void write(const Selection& selection, size_t end, uint8_t* to) const;
  static uint8_t* copy(const Part& part, bool mask, const uint8_t* row, uint8_t* to);

  int64_t window_, horizon_, stride_;
  bool masks_;
  int64_t group_by_ = -1;  // a column; -1: all rows are one group
  RowTime time_;
  std::vector<Part> parts_;  // of each slot of the rows
  uint64_t row_bytes_ = 0;
  std::vector<Selection> selections_;  // of each slot of the samples
  int64_t ahead_ = 0;                  // rows behind a window that it must have
  const tn_memory* memory_;
  files::Block data_;  // of the rows
  std::vector<Row> rows_;
  std::unordered_map<std::string, size_t> groups_;
  std::vector<size_t> order_;  // the rows by group and time
  std::vector<size_t> ends_;   // of the samples: the rank of the last row of the window
};

}  // namespace tenon::csv
