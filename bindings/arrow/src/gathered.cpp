// SPDX-License-Identifier: Apache-2.0
#include "gathered.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <tuple>

namespace tenon_arrow {

namespace {

size_t row_elements(const tenon::Array& array) {
  if (array.storage == TN_CSR) return 1;
  size_t elements = 1;
  for (size_t i = 1; i < array.shape.size(); ++i) elements *= static_cast<size_t>(array.shape[i]);
  return elements;
}

size_t levels_of(const tenon::Array& array) {
  if (array.storage == TN_CSR) return 1;
  return array.storage == TN_DENSE ? 0 : array.levels;
}

// The first row, or entry, of a sample.
int64_t row_of(const tenon::Array& array, int64_t sample) {
  for (size_t level = 0; level < levels_of(array); ++level) sample = array.offsets[level][sample];
  return sample;
}

// Asks for the memory of a sample, whose row the processor cannot foresee. The rest of a long one it does.
void prefetch(const tenon::Array& array, int64_t sample, size_t row_bytes) {
  constexpr size_t kLine = 64, kMost = 4096;
  if (array.data == nullptr) return;
  const int64_t first = row_of(array, sample), last = row_of(array, sample + 1);
  const char* const at = static_cast<const char*>(array.data) + static_cast<size_t>(first) * row_bytes;
  const size_t bytes = std::min(static_cast<size_t>(last - first) * row_bytes, kMost);
  for (size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(at + i);
}

}  // namespace

size_t Gathered::gather(const tenon::Array& array, std::span<const int64_t> numbers) {
  const size_t row_bytes = row_elements(array) * tn_dtype_bytes(array.dtype);
  used_ = 0;
  ids_.clear();
  for (auto& offsets : offsets_) offsets.assign(1, 0);
  if (array.storage == TN_DENSE) (void)grow(numbers.size() * row_elements(array) * element_);
  used_ = 0;
  for (size_t i = 0, run = 0; i < numbers.size(); i += run) {
    run = 1;  // consecutive samples at once
    while (i + run < numbers.size() && numbers[i + run] == numbers[i] + static_cast<int64_t>(run)) ++run;
    if (i + run < numbers.size()) prefetch(array, numbers[i + run], row_bytes);
    if (const size_t fitting = append(array, numbers[i], run); fitting < run) return i + fitting;
  }
  return numbers.size();
}

size_t Gathered::append(const tenon::Array& array, int64_t first, size_t count) {
  int64_t end = first + static_cast<int64_t>(count), from = first, to = end;
  for (size_t level = 0; level < levels_of(array); ++level) {
    const int64_t* const offsets = array.offsets[level];
    const int64_t moved = offsets_[level].back() - offsets[from];
    for (int64_t i = from; i < to; ++i) offsets_[level].push_back(offsets[i + 1] + moved);
    from = offsets[from];
    to = offsets[to];
  }
  const size_t elements = row_elements(array), fitting = append_rows(array, from, to);
  if (fitting < static_cast<size_t>(to - from) * elements) {
    const int64_t row = from + static_cast<int64_t>(fitting / elements);
    for (end = first; row_of(array, end + 1) <= row;) ++end;
  }
  if (array.storage != TN_CSR) return static_cast<size_t>(end - first);
  const size_t entries = ids_.size();
  ids_.insert(ids_.end(), array.ids + from, array.ids + to);
  for (int64_t sample = first; sample < end; ++sample)
    if (!sort_entries(entries + static_cast<size_t>(row_of(array, sample) - from),
                      static_cast<size_t>(row_of(array, sample + 1) - row_of(array, sample))))
      end = sample;
  return static_cast<size_t>(end - first);
}

// Appends rows, or entries. Returns how many elements fit.
size_t Gathered::append_rows(const tenon::Array& array, int64_t first, int64_t last) {
  const size_t elements = row_elements(array), count = static_cast<size_t>(last - first) * elements;
  char* const to = grow(count * element_);
  if (count == 0) return 0;
  if (array.data == nullptr) {  // sparse without values: all are 1
    std::fill_n(reinterpret_cast<float*>(to), count, 1.0F);
    return count;
  }
  const char* const from =
      static_cast<const char*>(array.data) + static_cast<size_t>(first) * elements * tn_dtype_bytes(array.dtype);
  if (copy_) return copy_(from, to, count);
  std::memcpy(to, from, count * element_);
  return count;
}

// Brings the entries of a sample into the order of their columns. Returns false if it has one twice.
bool Gathered::sort_entries(size_t first, size_t count) {
  const auto ids = std::span(ids_).subspan(first, count);
  if (std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end()) return true;
  const auto values = std::span(reinterpret_cast<float*>(data_.data()) + first, count);
  std::vector<std::pair<int64_t, float>> entries(count);
  for (size_t i = 0; i < count; ++i) entries[i] = {ids[i], values[i]};
  std::sort(entries.begin(), entries.end());
  for (size_t i = 0; i < count; ++i) std::tie(ids[i], values[i]) = entries[i];
  return std::adjacent_find(ids.begin(), ids.end()) == ids.end();
}

char* Gathered::grow(size_t bytes) {
  if (used_ + bytes > data_.size()) data_.resize(std::max(used_ + bytes, data_.size() + data_.size() / 2));
  used_ += bytes;
  return data_.data() + used_ - bytes;
}

void Gathered::lend(const tenon::Array& array, tn_array& to) {
  to.data = data_.data();
  if (array.storage == TN_RAGGED) to.shape[0] = offsets_[array.levels == 2 ? 1 : 0].back();
  if (array.storage != TN_DENSE) to.offsets[0] = offsets_[0].data();
  if (array.storage == TN_RAGGED && array.levels == 2) to.offsets[1] = offsets_[1].data();
  if (array.storage == TN_CSR) to.ids = ids_.data();
}

}  // namespace tenon_arrow
