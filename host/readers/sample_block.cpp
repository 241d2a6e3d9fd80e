// SPDX-License-Identifier: Apache-2.0
#include "host/readers/sample_block.h"

#include <algorithm>
#include <cstring>

#include "core/checked.h"
#include "core/parameter_set.h"
#include "core/shape.h"

namespace tenon::host {

void GrowingBuffer::reserve(int64_t count, uint64_t element, int64_t used) {
  const uint64_t bytes = checked_multiply(static_cast<uint64_t>(count), element, "bytes of samples");
  if (bytes <= buffer_.size()) return;
  Buffer grown(allocator_, std::max(bytes, buffer_.size() + buffer_.size() / 2));
  if (used > 0) std::memcpy(grown.data(), buffer_.data(), static_cast<uint64_t>(used) * element);
  buffer_ = std::move(grown);
}

// ---- one slot

Column::Column(Slot slot, const std::shared_ptr<Allocator>& allocator)
    : slot_(std::move(slot)),
      data_(allocator),
      ids_(allocator),
      offsets_{GrowingBuffer(allocator), GrowingBuffer(allocator)} {
  room_.size = sizeof room_;
  if (!sequences()) return;
  offsets_[0].reserve(1, sizeof(int64_t), 0);
  *offsets(0) = 0;
  if (!nested()) return;
  offsets_[1].reserve(1, sizeof(int64_t), 0);
  *offsets(1) = 0;
}

ArrayView Column::view() const {
  ArrayView view;
  view.dtype = slot_.dtype;
  view.data = data_.data();
  view.storage = slot_.storage;
  view.levels = slot_.levels;
  view.samples = samples_;
  view.shape = {slot_.storage == TN_RAGGED ? row_at(samples_) : samples_};
  view.shape.insert(view.shape.end(), slot_.shape.begin(), slot_.shape.end());
  if (sequences()) view.offsets[0] = offsets(0);
  if (nested()) view.offsets[1] = offsets(1);
  if (sparse()) view.ids = ids_.data<int64_t>();
  return view;
}

void Column::truncate(int64_t samples) { samples_ = std::min(samples_, samples); }

void Column::reserve_samples(int64_t samples) {
  if (sequences())
    offsets_[0].reserve(checked_add(samples, int64_t{1}, "samples"), sizeof(int64_t), samples_ + 1);
  else
    data_.reserve(samples, slot_.bytes, samples_);
}

void Column::reserve_inner(int64_t inner) {
  offsets_[1].reserve(checked_add(inner, int64_t{1}, "inner sequences"), sizeof(int64_t), inner_at(samples_) + 1);
}

void Column::reserve_rows(int64_t rows) {
  data_.reserve(rows, slot_.bytes, row_at(samples_));
  if (sparse()) ids_.reserve(rows, sizeof(int64_t), row_at(samples_));
}

void Column::reserve(int64_t samples) {
  reserve_samples(samples);
  if (nested()) reserve_inner(samples);
  if (sequences()) reserve_rows(samples);
}

void Column::append(const Column& from, int64_t begin, int64_t count) {
  Piece piece;
  piece.samples = count;
  const int64_t row = from.row_at(begin);
  piece.rows = from.row_at(begin + count) - row;
  piece.data = from.data_.data() + static_cast<uint64_t>(row) * slot_.bytes;
  if (sequences()) piece.offsets[0] = from.offsets(0) + begin;
  if (nested()) piece.offsets[1] = from.offsets(1) + from.inner_at(begin);
  if (sparse()) piece.ids = from.ids_.data<int64_t>() + row;
  append(piece);
}

void Column::take(Column& from) {
  if (samples_ == 0) {
    std::swap(data_, from.data_);
    std::swap(ids_, from.ids_);
    std::swap(offsets_, from.offsets_);
    std::swap(samples_, from.samples_);
  } else {
    append(from, 0, from.samples_);
  }
  from.truncate(0);
}

void Column::append(const ArrayView& values) {
  Piece piece;
  piece.samples = slot_.storage == TN_RAGGED ? values.samples : values.shape[0];
  piece.rows = sparse() ? values.offsets[0][piece.samples] : values.shape[0];
  piece.data = values.data;
  piece.strided = is_row_major(values) ? nullptr : &values;
  piece.offsets = {values.offsets[0], values.offsets[1]};
  piece.ids = values.ids;
  append(piece);
}

void Column::append(const Piece& piece) {
  const auto continue_at = [](int64_t* to, const int64_t* from, int64_t count) {
    for (int64_t i = 1; i <= count; ++i) to[i] = to[0] + from[i] - from[0];
  };
  const int64_t row = row_at(samples_);
  reserve_samples(checked_add(samples_, piece.samples, "samples"));
  if (sequences()) reserve_rows(checked_add(row, piece.rows, "rows"));
  if (nested()) {
    const int64_t inner = inner_at(samples_), more = piece.offsets[0][piece.samples] - piece.offsets[0][0];
    reserve_inner(checked_add(inner, more, "inner sequences"));
    continue_at(offsets(1) + inner, piece.offsets[1], more);
  }
  if (sequences()) continue_at(offsets(0) + samples_, piece.offsets[0], piece.samples);
  std::byte* const to = data_.data() + static_cast<uint64_t>(row) * slot_.bytes;
  if (piece.strided != nullptr)
    copy_elements(*piece.strided, to);
  else if (piece.data != nullptr && piece.rows > 0)
    std::memcpy(to, piece.data, static_cast<uint64_t>(piece.rows) * slot_.bytes);
  else  // sparse without values: all are 1
    std::fill_n(reinterpret_cast<float*>(to), piece.rows, 1.0F);
  if (sparse()) std::copy_n(piece.ids, piece.rows, ids_.data<int64_t>() + row);
  samples_ += piece.samples;
}

void Column::retain(const std::vector<int64_t>& samples) {
  const auto bytes = static_cast<int64_t>(slot_.bytes);
  int64_t row = 0, inner = 0;
  for (size_t i = 0; i < samples.size(); ++i) {  // moves only towards the front, so no sample is lost
    const int64_t from = row_at(samples[i]), rows = row_at(samples[i] + 1) - from;
    if (nested()) {
      const int64_t from_inner = inner_at(samples[i]), count = inner_at(samples[i] + 1) - from_inner;
      for (int64_t k = 1; k <= count; ++k) offsets(1)[inner + k] = row + offsets(1)[from_inner + k] - from;
      inner += count;
    }
    if (sequences()) offsets(0)[i + 1] = nested() ? inner : row + rows;
    if (rows > 0)
      std::memmove(data_.data() + row * bytes, data_.data() + from * bytes, static_cast<size_t>(rows * bytes));
    if (sparse()) std::copy_n(ids_.data<int64_t>() + from, rows, ids_.data<int64_t>() + row);
    row += rows;
  }
  samples_ = static_cast<int64_t>(samples.size());
}

// ---- samples that a plugin writes

void* Column::offer(int64_t samples) {
  reserve_samples(checked_add(samples_, samples, "samples"));
  if (!sequences()) return data_.data() + static_cast<uint64_t>(samples_) * slot_.bytes;
  const int64_t row = row_at(samples_), inner = inner_at(samples_);
  reserve_rows(checked_add(row, samples, "rows"));  // more if there is more memory from before
  room_.rows_capacity = data_.capacity(slot_.bytes) - row;
  if (sparse()) room_.rows_capacity = std::min(room_.rows_capacity, ids_.capacity(sizeof(int64_t)) - row);
  room_.rows = data_.data() + static_cast<uint64_t>(row) * slot_.bytes;
  room_.ids = sparse() ? ids_.data<int64_t>() + row : nullptr;
  room_.lengths = offsets(0) + samples_ + 1;
  room_.inner_capacity = 0;
  room_.inner_lengths = nullptr;
  if (nested()) {
    reserve_inner(checked_add(inner, samples, "inner sequences"));
    room_.inner_capacity = offsets_[1].capacity(sizeof(int64_t)) - inner - 1;
    room_.inner_lengths = offsets(1) + inner + 1;
  }
  room_.rows_needed = room_.inner_needed = 0;
  return &room_;
}

bool Column::grow() {
  const bool rows = room_.rows_needed > room_.rows_capacity, inner = room_.inner_needed > room_.inner_capacity;
  if (rows) reserve_rows(checked_add(row_at(samples_), room_.rows_needed, "rows"));
  if (nested() && inner) reserve_inner(checked_add(inner_at(samples_), room_.inner_needed, "inner sequences"));
  return rows || (nested() && inner);
}

// Turns the `count` lengths after offset `begin` into offsets. Returns the fault if a length is negative or their sum
// exceeds `most`, else "".
std::string Column::complaint_of_sums(size_t level, int64_t begin, int64_t count, int64_t most) const {
  int64_t* const at = offsets(level) + begin;
  const int64_t start = at[0];
  for (int64_t i = 1; i <= count; ++i) {
    if (at[i] < 0 || at[i] > most - (at[i - 1] - start))
      return text(level == 0 ? "sample " : "inner sequence ", i - 1, " of those just read has length ", at[i],
                  "; there was room for ", most, " in all");
    at[i] += at[i - 1];
  }
  return "";
}

std::string Column::complaint(int64_t count) {
  if (sequences())
    if (std::string wrong = complaint_of_lengths(count); !wrong.empty()) return wrong;
  if (sparse()) return complaint_of_ids(ids_.data<int64_t>(), offsets(0) + samples_, count);
  const int64_t first = row_at(samples_);
  ArrayView rows;
  rows.dtype = slot_.dtype;
  rows.data = data_.data() + static_cast<uint64_t>(first) * slot_.bytes;
  rows.shape = {row_at(samples_ + count) - first};
  rows.shape.insert(rows.shape.end(), slot_.shape.begin(), slot_.shape.end());
  return complaint_of_integers(rows, [&](int64_t i) { return row_at(samples_ + i + 1) - first; });
}

// Turns lengths into offsets.
std::string Column::complaint_of_lengths(int64_t count) {
  const int64_t most = nested() ? room_.inner_capacity : room_.rows_capacity;
  if (std::string wrong = complaint_of_sums(0, samples_, count, most); !wrong.empty()) return wrong;
  if (nested()) {
    const int64_t inner = inner_at(samples_);
    return complaint_of_sums(1, inner, inner_at(samples_ + count) - inner, room_.rows_capacity);
  }
  return "";
}

std::string Column::complaint_of_integers(const ArrayView& rows, const std::function<int64_t(int64_t)>& end_of) const {
  if (slot_.index_limit < 0) return "";
  const std::optional<IndexBeyond> found = first_beyond(rows, {slot_.index_limit, std::nullopt});
  if (!found) return "";
  const int64_t row = found->element / static_cast<int64_t>(slot_.bytes / tn_dtype_bytes(slot_.dtype));
  int64_t sample = 0;
  while (end_of(sample) <= row) ++sample;
  return text("sample ", sample, " of those just read is ", found->value, "; the slot's limit is ", slot_.index_limit);
}

std::string Column::complaint_of_ids(const int64_t* ids, const int64_t* offsets, int64_t samples) const {
  for (int64_t i = 0; i < samples; ++i)
    for (int64_t k = offsets[i]; k < offsets[i + 1]; ++k) {
      if (ids[k] < 0 || ids[k] >= slot_.shape[0])
        return text("sample ", i, " of those just read has column ", ids[k], " of ", slot_.shape[0]);
      if (k > offsets[i] && ids[k] <= ids[k - 1])
        return text("sample ", i, " of those just read has column ", ids[k], " after ", ids[k - 1],
                    "; expected rising columns");
    }
  return "";
}

// ---- samples of an application

namespace {

// Returns the first fault of offsets, which must go from 0 to `last` without falling; "" if there is none.
std::string complaint_of_offsets(const int64_t* offsets, int64_t count, int64_t last, const char* what) {
  if (offsets == nullptr) return text("the offsets of the ", what, " are null");
  if (offsets[0] != 0) return text("the offsets of the ", what, " begin with ", offsets[0], "; expected 0");
  for (int64_t i = 0; i < count; ++i)
    if (offsets[i + 1] < offsets[i] || offsets[i + 1] > last)
      return text("the offsets of the ", what, " go from ", offsets[i], " to ", offsets[i + 1], " at ", i, ", of ",
                  last);
  if (offsets[count] != last) return text("the offsets of the ", what, " end with ", offsets[count], ", not ", last);
  return "";
}

}  // namespace

std::string Column::complaint(const ArrayView& values, int64_t samples) const {
  if (values.dtype != slot_.dtype || values.storage != slot_.storage || values.levels != slot_.levels)
    return text("expected ", slot_text(slot_), ", got ", storage_name(values.storage), " ", dtype_name(values.dtype),
                " of ", values.levels, " levels");
  if (values.shape.size() != slot_.shape.size() + 1 ||
      !std::equal(slot_.shape.begin(), slot_.shape.end(), values.shape.begin() + 1))
    return text("expected ", slot_text(slot_), " of each sample or row, got ", to_string(values.shape), " in all");
  const int64_t given = slot_.storage == TN_RAGGED ? values.samples : values.shape[0];
  if (given != samples) return text("expected ", samples, " samples, got ", given);
  if (values.shape[0] < 0) return text("a negative number of rows, ", values.shape[0]);
  int64_t rows = values.shape[0];
  if (sparse()) {
    if (values.offsets[0] == nullptr) return "the offsets of the samples are null";
    rows = values.offsets[0][samples];
    if (rows > 0 && values.ids == nullptr) return "the ids are null";
  }
  if (rows > 0 && values.data == nullptr && !sparse()) return "the data is null";
  const auto end_of = [&](int64_t i) {
    return !sequences() ? i + 1 : nested() ? values.offsets[1][values.offsets[0][i + 1]] : values.offsets[0][i + 1];
  };
  if (!sequences()) return complaint_of_integers(values, end_of);
  const int64_t inner = nested() && values.offsets[0] != nullptr ? values.offsets[0][samples] : 0;
  std::string wrong = complaint_of_offsets(values.offsets[0], samples, nested() ? inner : rows, "samples");
  if (wrong.empty() && nested()) wrong = complaint_of_offsets(values.offsets[1], inner, rows, "inner sequences");
  if (!wrong.empty()) return wrong;
  return sparse() ? complaint_of_ids(values.ids, values.offsets[0], samples) : complaint_of_integers(values, end_of);
}

// ---- all slots

SampleBlock::SampleBlock(const std::vector<Slot>& slots, const std::shared_ptr<Allocator>& allocator) {
  columns_.reserve(slots.size());
  for (const Slot& slot : slots) columns_.emplace_back(slot, allocator);
}

std::vector<ArrayView> SampleBlock::views() const {
  std::vector<ArrayView> result;
  for (const Column& column : columns_) result.push_back(column.view());
  return result;
}

void SampleBlock::truncate(int64_t samples) {
  for (Column& column : columns_) column.truncate(samples);
}

void SampleBlock::reserve(int64_t samples) {
  for (Column& column : columns_) column.reserve(samples);
}

void SampleBlock::retain(const std::vector<int64_t>& samples) {
  for (Column& column : columns_) column.retain(samples);
}

void SampleBlock::append(const SampleBlock& from, int64_t begin, int64_t count) {
  Mark mark(*this);
  for (size_t i = 0; i < columns_.size(); ++i) columns_[i].append(from.columns_[i], begin, count);
  mark.keep();
}

void SampleBlock::take(SampleBlock& from) {
  if (samples() == 0)
    std::swap(columns_, from.columns_);
  else
    append(from, 0, from.samples());
  from.clear();
}

void SampleBlock::append(const std::vector<ArrayView>& lent, int64_t samples, const std::string& who) {
  Mark mark(*this);
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    if (const std::string wrong = column.complaint(lent[i], samples); !wrong.empty())
      fail(TN_INVALID, ComponentName{who}, SubjectName{column.slot().name}, "slot \"", column.slot().name,
           "\": ", wrong);
    column.append(lent[i]);
  }
  mark.keep();
}

std::vector<ArrayView> arrays_to_lend(const std::vector<Slot>& slots, int64_t samples) {
  std::vector<ArrayView> result;
  for (const Slot& slot : slots) {
    ArrayView array;
    array.dtype = slot.dtype;
    array.storage = slot.storage;
    array.levels = slot.levels;
    array.samples = samples;
    array.shape = {slot.storage == TN_RAGGED ? 0 : samples};
    array.shape.insert(array.shape.end(), slot.shape.begin(), slot.shape.end());
    result.push_back(std::move(array));
  }
  return result;
}

}  // namespace tenon::host
