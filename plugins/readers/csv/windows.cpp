// Samples that are windows of rows. SPDX-License-Identifier: Apache-2.0
#include "windows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "file.h"

namespace tenon::csv {

namespace {

constexpr const char* kOthers[] = {"targets", "group_by", "order_by", "step"};

[[noreturn]] void fail_unknown(const char* attribute, std::string_view name, const std::vector<std::string>& columns) {
  throw tn::Failure(TN_INVALID, attribute,
                    "unknown column " + files::quoted(name) + "; known: " + files::listed(columns));
}

// The column of this name that a slot of the rows has.
const Column& column_of(std::string_view name, const RecordParser& parser) {
  std::vector<std::string> names;
  for (const Column& column : parser.columns) {
    if (column.slot < 0) continue;
    if (column.name == name) return column;
    names.push_back(column.name);
  }
  fail_unknown("targets", name, names);
}

}  // namespace

void Windows::describe(tn::ReaderDescription& d) {
  constexpr int64_t kMost = 1 << 24;
  d.attribute(tn::int_attribute("window").at_least(1).at_most(kMost).doc(
      "a sample is so many rows, one behind the other: slots are [window, ...]"));
  d.attribute(
      tn::int_attribute("horizon", 1).at_least(1).at_most(kMost).doc("so many rows behind the window are the targets"));
  d.attribute(tn::int_attribute("stride", 1)
                  .at_least(1)
                  .at_most(kMost)
                  .doc("rows from one window to the next; the last window of a group always is a sample"));
  d.attribute(
      tn::strings_attribute("targets").doc("slots of the rows behind the window, each \"slot = column, ...\" with "
                                           "columns that entries of \"columns\" have"));
  d.attribute(tn::string_attribute("group_by").doc("a column: windows have rows with one value of it, such as a shop"));
  RowTime::describe(d);
  d.attribute(
      tn::bool_attribute("masks", false)
          .doc("windows may have gaps and missing values, which are 0; each slot has another, SLOT_mask, with 1 "
               "for the columns of a row that are there; false: windows with gaps are left out"));
}

bool Windows::is_used(const tn::Attributes& attributes) {
  const bool used = attributes.has("window");
  const auto refuse = [&](const char* attribute) {
    throw tn::Failure(TN_INVALID, attribute, "needs the attribute window");
  };
  for (const char* const other : kOthers)
    if (!used && attributes.has(other)) refuse(other);
  if (!used && attributes.integer("horizon") != 1) refuse("horizon");
  if (!used && attributes.integer("stride") != 1) refuse("stride");
  if (!used && attributes.flag("masks")) refuse("masks");
  if (used && (attributes.has("sequence_by") || attributes.has("per_sequence") || attributes.flag("sentences")))
    throw tn::Failure(TN_INVALID, "window", "a sample is a window of rows or a sequence of them, not both");
  return used;
}

Windows::Windows(const std::vector<std::string>& names, const tn::ReaderOpen& open)
    : window_(open.attributes().integer("window")),
      horizon_(open.attributes().integer("horizon")),
      stride_(open.attributes().integer("stride")),
      masks_(open.attributes().flag("masks")),
      time_(names, open),
      memory_(open.memory()) {
  const tn::Attributes attributes = open.attributes();
  if (!attributes.has("group_by")) return;
  const auto column = std::find(names.begin(), names.end(), attributes.text("group_by"));
  if (column == names.end()) fail_unknown("group_by", attributes.text("group_by"), names);
  group_by_ = column - names.begin();
}

void Windows::permit_missing(RecordParser& parser) const {
  for (Column& column : parser.columns) {
    if (!masks_ || column.slot < 0 || column.missing != Missing::kError) continue;
    column.missing = Missing::kValue;
    column.own_fill = true;
    column.fill = 0;
  }
}

std::vector<tn::ReaderSlot> Windows::prepare(RecordParser& parser, const std::vector<tn::ReaderSlot>& rows,
                                             const tn::ReaderOpen& open) {
  std::vector<tn::ReaderSlot> slots;
  for (size_t slot = 0; slot < rows.size(); ++slot) {
    const tn::ReaderSlot& row = rows[slot];
    if (row.storage != TN_DENSE)
      throw tn::Failure(TN_INVALID, "window",
                        "the slot " + files::quoted(row.name) + " holds lists or texts; windows have numbers alone");
    Part& part = parts_.emplace_back();
    part.width = tn_dtype_bytes(row.dtype);
    part.begin = row_bytes_;
    part.bytes = part.width * static_cast<uint64_t>(row.shape.empty() ? 1 : row.shape[0]);
    row_bytes_ += part.bytes;
    size_t columns = 0;
    for (Column& column : parser.columns) {
      if (column.slot != static_cast<int32_t>(slot)) continue;
      ++columns;
      if (!masks_) continue;
      if (column.flag < 0) {  // an indicator is not a part of the slot
        column.flag = static_cast<int64_t>(row_bytes_ - part.begin);
        row_bytes_ += part.width;
      }
      part.flags.push_back(part.begin + static_cast<uint64_t>(column.flag));
    }
    add_slot(row, {{part}}, row.shape, row.shape.empty() ? 0 : columns, slots);
  }
  add_targets(parser, rows, open, slots);
  return slots;
}

// Adds a slot of samples, and that of its mask. row_shape: of a row. columns: the size of the mask of a row; 0: of the
// shape [].
void Windows::add_slot(const tn::ReaderSlot& slot, Selection selection, const std::vector<int64_t>& row_shape,
                       size_t columns, std::vector<tn::ReaderSlot>& slots) {
  for (const bool mask : {false, true}) {
    if (mask && !masks_) break;
    const std::string name = slot.name + (mask ? "_mask" : "");
    for (const tn::ReaderSlot& other : slots)
      if (other.name == name) throw tn::Failure(TN_INVALID, "targets", "two slots are named " + files::quoted(name));
    tn::ReaderSlot added = slot;
    if (mask) added = tn::ReaderSlot{name, TN_F32, {}};
    added.shape = row_shape;
    if (mask && columns > 0) added.shape = {static_cast<int64_t>(columns)};
    const int64_t count = selection.ahead ? horizon_ : window_;
    if (!selection.ahead || count > 1) added.shape.insert(added.shape.begin(), count);
    slots.push_back(std::move(added));
    selection.mask = mask;
    selections_.push_back(selection);
  }
}

// Adds the slots of "targets" that are needed, of columns that the rows have.
void Windows::add_targets(const RecordParser& parser, const std::vector<tn::ReaderSlot>& rows,
                          const tn::ReaderOpen& open, std::vector<tn::ReaderSlot>& slots) {
  if (!open.attributes().has("targets")) return;
  for (const std::string& entry : open.attributes().texts("targets")) {
    const auto fail = [&](const std::string& why) {
      throw tn::Failure(TN_INVALID, "targets", files::quoted(entry, entry.size()) + ": " + why);
    };
    const size_t sign = entry.find('=');
    if (sign == std::string::npos) fail("expected \"slot = column\", or several columns");
    tn::ReaderSlot target{std::string(trimmed(entry.substr(0, sign), '\0')), TN_F32, {}};
    if (const char* const fault = files::name_fault(target.name); fault != nullptr || target.name.empty())
      fail(target.name.empty() ? "the slot has no name" : std::string("the name of the slot ") + fault);
    if (!open.needed(target.name)) continue;
    Selection selection;
    selection.ahead = true;
    int64_t elements = 0;
    for_each_value(entry.substr(sign + 1), ",", [&](std::string_view name) {
      const Column& column = column_of(name, parser);
      const auto slot = static_cast<size_t>(column.slot);
      const bool set = column.type.multi_hot;  // it is its slot
      const auto values = set ? static_cast<uint64_t>(rows[slot].shape[0]) : column.type.values();
      Part part = {parts_[slot].begin + column.offset, values * parts_[slot].width, {}, parts_[slot].width};
      if (masks_) part.flags = {parts_[slot].begin + static_cast<uint64_t>(column.flag)};
      if (!selection.parts.empty() && rows[slot].dtype != target.dtype) fail("the columns have different types");
      target.dtype = rows[slot].dtype;
      const bool one = selection.parts.empty() && rows[slot].shape.empty();
      target.index_limit = one ? rows[slot].index_limit : -1;
      target.names = one ? rows[slot].names : nullptr;
      selection.parts.push_back(std::move(part));
      elements += static_cast<int64_t>(values);
    });
    const size_t columns = selection.parts.size();
    add_slot(target, std::move(selection), elements == 1 ? std::vector<int64_t>{} : std::vector<int64_t>{elements},
             elements == 1 ? 0 : columns, slots);
    ahead_ = horizon_;
  }
}

void Windows::add(int64_t record, const std::vector<std::string>& texts, std::vector<uint8_t*>& to) {
  Row row;
  row.record = record;
  row.time = time_.time(texts);
  if (group_by_ >= 0) row.group = groups_.emplace(texts[static_cast<size_t>(group_by_)], groups_.size()).first->second;
  const uint64_t done = rows_.size() * row_bytes_;
  if (done + row_bytes_ > data_.size()) {
    constexpr uint64_t kFirst = uint64_t{1} << 16;
    files::Block larger(memory_, std::max({2 * data_.size(), done + row_bytes_, kFirst}));
    if (done != 0) std::memcpy(larger.data(), data_.data(), done);
    data_.swap(larger);
  }
  rows_.push_back(row);
  for (size_t slot = 0; slot < parts_.size(); ++slot) to[slot] = data_.data() + done + parts_[slot].begin;
}

std::string Windows::finish(const tn::Shard& shard,
                            const std::function<void(int64_t row, const std::string& why)>& fail) {
  order_.resize(rows_.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::stable_sort(order_.begin(), order_.end(), [this](size_t a, size_t b) {
    const Row &left = rows_[a], &right = rows_[b];
    return left.group != right.group ? left.group < right.group : left.time < right.time;
  });
  std::vector<size_t> all;
  int64_t rows = 0, most = 0;  // without a gap, or of a group
  for (size_t first = 0, last = 0; first < order_.size(); first = last + 1) {
    last = first;
    for (; last + 1 < order_.size() && at(last + 1).group == at(first).group; ++last) {
      try {
        rows_[order_[last + 1]].place = at(last).place + time_.steps(at(last).time, at(last + 1).time);
      } catch (const BadRecord& bad) {
        fail(static_cast<int64_t>(order_[last + 1]), bad.why);
      }
    }
    for (size_t rank = first; rank <= last; ++rank) {
      const bool gap = rank > first && !masks_ && at(rank).place > at(rank - 1).place + 1;
      rows = rank == first || gap ? 1 : rows + 1;
      most = std::max(most, rows);
      if (ends_window(rank, first, last)) all.push_back(rank);
    }
  }
  std::sort(all.begin(), all.end(), [this](size_t a, size_t b) { return order_[a] < order_[b]; });
  for (size_t i = 0; i < all.size(); ++i)
    if (shard.has(static_cast<int64_t>(i))) ends_.push_back(all[i]);
  if (!all.empty() || rows_.empty()) return "";
  return "has no window of " + std::to_string(window_) + " rows and " + std::to_string(ahead_) +
         " behind them: the most rows of a group" + (masks_ ? "" : " without a gap") + " are " + std::to_string(most);
}

// Whether a window ends at the row `rank` in order, of the group [first, last].
bool Windows::ends_window(size_t rank, size_t first, size_t last) const {
  const int64_t place = at(rank).place, end = at(last).place - ahead_;
  if (place < window_ - 1 || place > end || (end - place) % stride_ != 0) return false;
  if (masks_) return ahead_ == 0 || (rank < last && at(rank + 1).place <= place + ahead_);
  const auto back = static_cast<size_t>(window_ - 1), ahead = static_cast<size_t>(ahead_);
  return rank - first >= back && at(rank - back).place == place - window_ + 1 && last - rank >= ahead &&
         at(rank + ahead).place == place + ahead_;
}

void Windows::read(int64_t sample, tn::Samples& to) const {
  for (size_t slot = 0; slot < selections_.size(); ++slot)
    write(selections_[slot], ends_[static_cast<size_t>(sample)], to.dense<uint8_t>(slot));
}

// Writes a slot of the sample whose window ends at the row `end` in order.
void Windows::write(const Selection& selection, size_t end, uint8_t* to) const {
  const int64_t count = selection.ahead ? horizon_ : window_;
  const int64_t from = at(end).place + (selection.ahead ? 1 : 1 - window_);
  const size_t group = at(end).group;
  uint64_t bytes = 0;  // of a row
  for (const Part& part : selection.parts) bytes += selection.mask ? part.flags.size() * sizeof(float) : part.bytes;
  std::memset(to, 0, bytes * static_cast<uint64_t>(count));
  size_t rank = selection.ahead ? end + 1 : end;
  while (!selection.ahead && rank > 0 && at(rank - 1).group == group && at(rank - 1).place >= from) --rank;
  for (; rank < order_.size() && at(rank).group == group && at(rank).place < from + count; ++rank) {
    uint8_t* value = to + static_cast<uint64_t>(at(rank).place - from) * bytes;
    const uint8_t* const row = data_.data() + order_[rank] * row_bytes_;
    for (const Part& part : selection.parts) value = copy(part, selection.mask, row, value);
  }
}

// Writes what a slot has of a row. Returns the end.
uint8_t* Windows::copy(const Part& part, bool mask, const uint8_t* row, uint8_t* to) {
  if (!mask) return static_cast<uint8_t*>(std::memcpy(to, row + part.begin, part.bytes)) + part.bytes;
  for (const uint64_t flag : part.flags) {
    const auto zero = [](uint8_t byte) { return byte == 0; };
    const float there = std::all_of(row + flag, row + flag + part.width, zero) ? 1 : 0;
    std::memcpy(to, &there, sizeof there);
    to += sizeof there;
  }
  return to;
}

}  // namespace tenon::csv
