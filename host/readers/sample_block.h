// Samples of named slots in growing host memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/reader.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/array_view.h"
#include "core/system.h"
#include "host/readers/slot.h"

namespace tenon::host {

using namespace core;

// Memory that grows and keeps its contents.
class GrowingBuffer {
 public:
  explicit GrowingBuffer(std::shared_ptr<Allocator> allocator) : allocator_(std::move(allocator)) {}

  template <typename T = std::byte>
  [[nodiscard]] T* data() const {
    return reinterpret_cast<T*>(buffer_.data());
  }
  // The number of elements of `element` bytes that fit.
  [[nodiscard]] int64_t capacity(uint64_t element) const { return static_cast<int64_t>(buffer_.size() / element); }
  // Makes room for `count` elements of `element` bytes and keeps the first `used` ones. Grows by half at least.
  void reserve(int64_t count, uint64_t element, int64_t used);

 private:
  std::shared_ptr<Allocator> allocator_;
  Buffer buffer_;
};

// The samples of one slot, concatenated. If they are not dense: their rows (entries), concatenated, and the offset at
// which each sample begins.
class Column {
 public:
  Column(Slot slot, const std::shared_ptr<Allocator>& allocator);

  [[nodiscard]] const Slot& slot() const { return slot_; }
  [[nodiscard]] int64_t samples() const { return samples_; }
  // Rows or entries of one sample, over all its inner sequences; 1 for a dense one.
  [[nodiscard]] int64_t length(int64_t sample) const { return row_at(sample + 1) - row_at(sample); }
  [[nodiscard]] ArrayView view() const;

  void truncate(int64_t samples);                    // keeps the first `samples`, and the memory
  void retain(const std::vector<int64_t>& samples);  // keeps these alone; ascending
  void reserve(int64_t samples);                     // memory for so many in all, with a row each
  void append(const Column& from, int64_t begin, int64_t count);
  // Moves all samples of `from`, whose slot must be equal but for the name, to the end of this column. Copies them only
  // if this column is not empty.
  void take(Column& from);
  // Appends an application's samples. Call complaint() before: it describes their first fault, "" if there is none.
  [[nodiscard]] std::string complaint(const ArrayView& values, int64_t samples) const;
  void append(const ArrayView& values);

  // A plugin writes after the last sample. offer() returns the column's element of tn_reader_buffers::data, with room
  // for `samples` samples. grow() enlarges room that the plugin has found too small; false if it has not. complaint()
  // turns the lengths of `count` written samples into offsets and describes the first fault, "" if there is none.
  // accept() makes the samples part of the column, after complaint().
  [[nodiscard]] void* offer(int64_t samples);
  [[nodiscard]] bool grow();
  [[nodiscard]] std::string complaint(int64_t count);
  void accept(int64_t count) { samples_ += count; }

 private:
  // Concatenated samples, with the offsets of each level from the first sample on.
  struct Piece {
    int64_t samples = 0, rows = 0;
    const void* data = nullptr;
    std::array<const int64_t*, 2> offsets = {nullptr, nullptr};
    const int64_t* ids = nullptr;
    const ArrayView* strided = nullptr;  // the array with the rows, in place of `data`; null: they are contiguous
  };
  void append(const Piece& piece);

  [[nodiscard]] bool sequences() const { return slot_.storage != TN_DENSE; }
  [[nodiscard]] bool sparse() const { return slot_.storage == TN_CSR; }
  [[nodiscard]] bool nested() const { return slot_.levels == 2; }
  [[nodiscard]] int64_t* offsets(size_t level) const { return offsets_[level].data<int64_t>(); }
  // The first inner sequence and the first row of a sample.
  [[nodiscard]] int64_t inner_at(int64_t sample) const { return nested() ? offsets(0)[sample] : 0; }
  [[nodiscard]] int64_t row_at(int64_t sample) const {
    return !sequences() ? sample : nested() ? offsets(1)[offsets(0)[sample]] : offsets(0)[sample];
  }
  void reserve_samples(int64_t samples);
  void reserve_inner(int64_t inner);
  void reserve_rows(int64_t rows);
  [[nodiscard]] std::string complaint_of_lengths(int64_t count);
  [[nodiscard]] std::string complaint_of_sums(size_t level, int64_t begin, int64_t count, int64_t most) const;
  // rows: the rows of some samples, concatenated. end_of(i): the rows of the first i + 1 samples.
  [[nodiscard]] std::string complaint_of_integers(const ArrayView& rows,
                                                  const std::function<int64_t(int64_t)>& end_of) const;
  [[nodiscard]] std::string complaint_of_ids(const int64_t* ids, const int64_t* offsets, int64_t samples) const;

  Slot slot_;
  int64_t samples_ = 0;
  GrowingBuffer data_, ids_;
  std::array<GrowingBuffer, 2> offsets_;  // int64 [samples + 1], [inner sequences + 1]
  tn_sequence_room room_ = {};
};

// One column per slot, all with the same samples.
class SampleBlock {
 public:
  SampleBlock() = default;
  SampleBlock(const std::vector<Slot>& slots, const std::shared_ptr<Allocator>& allocator);

  [[nodiscard]] int64_t samples() const { return columns_.empty() ? 0 : columns_.front().samples(); }
  [[nodiscard]] std::vector<Column>& columns() { return columns_; }
  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  [[nodiscard]] std::vector<ArrayView> views() const;

  void clear() { truncate(0); }
  void truncate(int64_t samples);
  void retain(const std::vector<int64_t>& samples);
  void reserve(int64_t samples);
  // On failure the block is unchanged.
  void append(const SampleBlock& from, int64_t begin, int64_t count);
  // Moves all samples of `from` to the end of this block. Copies them only if this block is not empty.
  void take(SampleBlock& from);
  // Appends an application's samples, one array per slot; TN_INVALID if an array does not match its slot.
  void append(const std::vector<ArrayView>& lent, int64_t samples, const std::string& who);

 private:
  std::vector<Column> columns_;
};

// Returns one array per slot with element type, storage and shape. The application sets data, offsets and the number of
// rows.
std::vector<ArrayView> arrays_to_lend(const std::vector<Slot>& slots, int64_t samples);

// Truncates a block in its destructor to the samples of its construction, unless keep() was called.
class Mark : base::NotCopied {
 public:
  explicit Mark(SampleBlock& block) : block_(block), samples_(block.samples()) {}
  ~Mark() {
    if (!kept_) block_.truncate(samples_);
  }
  void keep() { kept_ = true; }

 private:
  SampleBlock& block_;
  int64_t samples_;
  bool kept_ = false;
};

}  // namespace tenon::host
