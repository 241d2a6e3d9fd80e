// SPDX-License-Identifier: Apache-2.0
#include "host/generation/history.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/checked.h"

namespace tenon::host {

History::History(std::shared_ptr<Allocator> allocator, tn_dtype dtype, const std::vector<std::vector<int64_t>>& shapes)
    : allocator_(std::move(allocator)), dtype_(dtype) {
  for (const std::vector<int64_t>& shape : shapes) {
    Column& column = columns_.emplace_back();
    column.row_bytes = static_cast<uint64_t>(tn_dtype_bytes(dtype));
    column.shape = {0};
    for (const int64_t extent : shape) {
      column.row_bytes = checked_multiply(column.row_bytes, static_cast<uint64_t>(extent), "the bytes of a row");
      column.shape.push_back(extent);
    }
  }
}

void History::begin(size_t rows) {
  rows_ = added_ = 0;
  for (Column& column : columns_) column.shape[0] = 0;
  ends_.assign(rows + 1, 0);
  column_ends_.assign(rows + 1, 0);
}

// Makes room for `bytes` and keeps what is there.
void History::grow(Column& column, uint64_t bytes) {
  if (column.memory.size() >= bytes) return;
  Buffer larger(allocator_, std::max(bytes, checked_multiply(column.memory.size(), uint64_t{2}, "history")));
  const uint64_t kept = rows_ * column.row_bytes;
  if (kept > 0) std::memcpy(larger.data(), column.memory.data(), kept);
  column.memory = std::move(larger);
}

void History::add(const std::vector<ArrayView>& values) {
  added_ = static_cast<size_t>(values.at(0).shape.at(0));
  for (size_t k = 0; k < columns_.size(); ++k) {
    Column& column = columns_[k];
    grow(column, checked_multiply(rows_ + added_, column.row_bytes, "history"));
    const uint64_t bytes = added_ * column.row_bytes;
    if (bytes > 0) std::memcpy(column.memory.data() + rows_ * column.row_bytes, values[k].data, bytes);
    column.shape[0] = static_cast<int64_t>(rows_ + added_);
  }
  rows_ += added_;
}

void History::advance(const std::vector<size_t>& parents) {
  const auto length = [&](size_t row) { return ends_[row + 1] - ends_[row]; };
  std::vector<int64_t> ends{0};
  for (const size_t parent : parents) ends.push_back(ends.back() + length(parent) + 1);
  const uint64_t bytes = checked_multiply(static_cast<uint64_t>(ends.back()), sizeof(int64_t), "history");
  if (next_past_.size() < bytes) next_past_ = Buffer(allocator_, std::max(bytes, 2 * past_.size()));
  const auto* const from = reinterpret_cast<const int64_t*>(past_.data());
  auto* to = reinterpret_cast<int64_t*>(next_past_.data());
  for (const size_t parent : parents) {
    if (length(parent) > 0) to = std::copy_n(from + ends_[parent], length(parent), to);
    *to++ = static_cast<int64_t>(rows_ - added_ + parent);
  }
  std::swap(past_, next_past_);
  ends_ = std::move(ends);
  column_ends_.assign(parents.size() + 1, static_cast<int64_t>(rows_));
  column_ends_[0] = 0;
}

namespace {

// Sequences with these offsets.
ArrayView sequences(ArrayView view, const std::vector<int64_t>& ends) {
  view.storage = TN_RAGGED;
  view.levels = 1;
  view.offsets[0] = ends.data();
  view.samples = static_cast<int64_t>(ends.size()) - 1;
  return view;
}

}  // namespace

ArrayView History::past() const { return sequences({TN_I64, {ends_.back()}, past_.data()}, ends_); }

ArrayView History::value(size_t k) const {
  const Column& column = columns_.at(k);
  return sequences({dtype_, column.shape, column.memory.data()}, column_ends_);
}

}  // namespace tenon::host
