// SPDX-License-Identifier: Apache-2.0
#include "host/machine/sample_range.h"

#include <algorithm>

namespace tenon::host {

namespace {

// Moves the array to begin with entry `first` of its first dimension, of which it then has `count`.
void cut_rows(ArrayView& array, int64_t first, int64_t count) {
  int64_t stride = 1;
  if (!array.strides.empty())
    stride = array.strides[0];
  else
    for (size_t i = 1; i < array.shape.size(); ++i) stride *= array.shape[i];
  if (array.data != nullptr && first > 0)
    array.data = static_cast<const std::byte*>(array.data) + first * stride * tn_dtype_bytes(array.dtype);
  array.shape[0] = count;
}

}  // namespace

int64_t samples_of(const ArrayView& array) { return array.storage == TN_RAGGED ? array.samples : array.shape.at(0); }

void SampleRange::move(int64_t first, int64_t count) {
  offsets_.clear();
  for (size_t i = 0; i < arrays_.size(); ++i) cut(arrays_[i] = whole_[i], first, count);
}

void SampleRange::cut(ArrayView& array, int64_t first, int64_t count) {
  if (array.storage == TN_DENSE) return cut_rows(array, first, count);
  int64_t begin = first, entries = count;  // of sequences at this level, then of rows
  const size_t levels = array.storage == TN_CSR ? 1 : array.levels;
  for (size_t level = 0; level < levels; ++level) {
    const int64_t* const from = array.offsets[level] + begin;
    std::vector<int64_t> offsets(from, from + entries + 1);
    begin = offsets.front();
    for (int64_t& offset : offsets) offset -= begin;
    entries = offsets.back();
    offsets_.push_back(std::move(offsets));
    array.offsets[level] = offsets_.back().data();  // stays when the outer vector grows
  }
  if (array.storage == TN_CSR) {
    if (array.ids != nullptr) array.ids += begin;
    if (array.data != nullptr) array.data = static_cast<const float*>(array.data) + begin;
    array.shape[0] = count;
  } else {
    cut_rows(array, begin, entries);
    array.samples = count;
  }
}

}  // namespace tenon::host
