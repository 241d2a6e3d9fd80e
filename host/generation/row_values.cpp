// SPDX-License-Identifier: Apache-2.0
#include "host/generation/row_values.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/checked.h"

namespace tenon::host {

namespace {

uint64_t row_bytes(tn_dtype dtype, const std::vector<int64_t>& shape) {
  uint64_t bytes = static_cast<uint64_t>(tn_dtype_bytes(dtype));
  for (size_t i = 1; i < shape.size(); ++i)
    bytes = checked_multiply(bytes, static_cast<uint64_t>(shape[i]), "the bytes of a row");
  return bytes;
}

}  // namespace

std::byte* RowValues::room(uint64_t bytes) {
  if (next_.size() < bytes) next_ = Buffer(allocator_, std::max(bytes, 2 * now_.size()));
  return next_.data();
}

void RowValues::gather(const ArrayView& from, const std::vector<size_t>& numbers) {
  const bool ragged = from.storage == TN_RAGGED;
  const int64_t* const ends = from.offsets[0];
  std::vector<int64_t> offsets;
  if (ragged) {
    offsets.push_back(0);
    for (const size_t number : numbers) offsets.push_back(offsets.back() + ends[number + 1] - ends[number]);
  }
  const uint64_t bytes = row_bytes(from.dtype, from.shape);
  const auto rows = ragged ? static_cast<uint64_t>(offsets.back()) : numbers.size();
  std::byte* to = room(checked_multiply(rows, bytes, "the bytes of the rows of a step"));
  for (const size_t number : numbers) {
    const auto first = ragged ? static_cast<uint64_t>(ends[number]) : number;
    const uint64_t size = ragged ? static_cast<uint64_t>(ends[number + 1] - ends[number]) * bytes : bytes;
    if (size > 0) std::memcpy(to, static_cast<const std::byte*>(from.data) + first * bytes, size);
    to += size;
  }
  ArrayView view = from;
  view.shape.at(0) = static_cast<int64_t>(rows);
  std::swap(now_, next_);
  view.data = now_.data();
  offsets_ = std::move(offsets);
  if (ragged) {
    view.offsets[0] = offsets_.data();
    view.samples = static_cast<int64_t>(numbers.size());
  }
  view_ = std::move(view);
}

void RowValues::fill(tn_dtype dtype, const std::vector<int64_t>& shape, size_t count, double value) {
  ArrayView view{dtype, {static_cast<int64_t>(count)}};
  view.shape.insert(view.shape.end(), shape.begin(), shape.end());
  const uint64_t bytes =
      checked_multiply(static_cast<uint64_t>(count), row_bytes(dtype, view.shape), "the bytes of the rows of a step");
  std::byte* const to = room(bytes);
  const uint64_t elements = bytes / static_cast<uint64_t>(tn_dtype_bytes(dtype));
  if (dtype == TN_F64)
    std::fill_n(reinterpret_cast<double*>(to), elements, value);
  else
    std::fill_n(reinterpret_cast<float*>(to), elements, static_cast<float>(value));
  std::swap(now_, next_);
  view.data = now_.data();
  view_ = std::move(view);
}

}  // namespace tenon::host
