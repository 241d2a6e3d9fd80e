// SPDX-License-Identifier: Apache-2.0
#include "host/machine/sparse_gradient.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "core/alignment.h"
#include "core/checked.h"

namespace tenon::host {

SparseGradient::SparseGradient(ValueId value, size_t number, const ParameterEntry& entry, tn_dtype dtype,
                               HostAccess& access)
    : value_(value),
      entry_(number),
      access_(access),
      shape_(entry.shape),
      height_(entry.shape[0]),
      width_(std::accumulate(shape_.begin() + 1, shape_.end(), int64_t{1}, std::multiplies<>())),
      dtype_(dtype) {}

SparseGradient::Layout SparseGradient::layout(int64_t capacity) const {
  const auto rows = static_cast<uint64_t>(std::max<int64_t>(capacity, 1));
  const uint64_t row = storage_bytes(dtype_, static_cast<uint64_t>(width_), "row bytes");
  Layout result;
  result.ids = kCacheLine;
  result.values =
      checked_add(result.ids, whole_lines(checked_multiply(rows, uint64_t{sizeof(int64_t)}, "ids")), "gradient");
  result.total = checked_add(result.values, checked_multiply(rows, row, "gradient"), "gradient");
  return result;
}

void SparseGradient::plan(int64_t capacity) {
  bytes_ = layout(capacity).total;
  rows_ = {sizeof rows_, 0, capacity, nullptr, nullptr};
}

void SparseGradient::resize(int64_t capacity) {
  const Layout to = layout(capacity);
  DeviceMemory memory(access_.device(), to.total);
  const HostAccess::Finishing finishing(access_);
  access_.zero(memory.data(), kCacheLine);
  auto* ids = reinterpret_cast<int64_t*>(memory.data() + to.ids);
  std::byte* values = memory.data() + to.values;
  if (memory_.data() != nullptr) {
    const auto kept = static_cast<uint64_t>(count());
    access_.move(memory.data(), memory_.data(), sizeof(int64_t));
    access_.move(ids, rows_.ids, kept * sizeof(int64_t));
    access_.move(values, values_, kept * row_bytes());
  }
  access_.wait();  // before the memory is released
  bytes_ = to.total;
  memory_ = std::move(memory);
  rows_ = {sizeof rows_, 0, capacity, reinterpret_cast<int64_t*>(memory_.data()), ids};
  values_ = values;
}

int64_t SparseGradient::capacity_for(int64_t added) const {
  const int64_t most = std::min(height_, checked_add(count(), added, "rows"));
  return most <= capacity() ? capacity() : std::min(height_, std::max(most, capacity() * 2));
}

void SparseGradient::write(const std::vector<int64_t>& ids, const std::byte* values) {
  const auto rows = static_cast<int64_t>(ids.size());
  access_.write(rows_.count, &rows, sizeof rows);
  access_.write(rows_.ids, ids.data(), ids.size() * sizeof(int64_t));
  access_.write(values_, values, ids.size() * row_bytes());
}

void SparseGradient::copy(const SparseGradient& from) {
  const auto rows = static_cast<size_t>(from.count());
  access_.move(memory_.data(), from.memory_.data(), sizeof(int64_t));
  access_.move(rows_.ids, from.rows_.ids, rows * sizeof(int64_t));
  access_.move(values_, from.values_, rows * row_bytes());
  access_.wait();
}

SparseGradientView SparseGradient::view() const {
  const int64_t rows = count();
  SparseGradientView result;
  result.ids = {TN_I64, {rows}};
  result.ids.data = access_.view(rows_.ids, element_bytes(result.ids));
  result.values = {dtype_, shape_};
  result.values.shape[0] = rows;
  result.values.data = access_.view(values_, element_bytes(result.values));
  return result;
}

ArrayView SparseGradient::dense_copy(Buffer& buffer) const {
  const uint64_t bytes = checked_multiply(static_cast<uint64_t>(height_), row_bytes(), "gradient");
  if (buffer.size() < bytes) buffer = Buffer(access_.allocator(), bytes);
  if (bytes > 0) std::memset(buffer.data(), 0, bytes);
  const SparseGradientView rows = view();
  const auto* const ids = static_cast<const int64_t*>(rows.ids.data);
  for (int64_t i = 0; i < rows.ids.shape[0]; ++i)
    std::memcpy(buffer.data() + static_cast<uint64_t>(ids[i]) * row_bytes(),
                static_cast<const std::byte*>(rows.values.data) + static_cast<uint64_t>(i) * row_bytes(), row_bytes());
  return {dtype_, shape_, buffer.data()};
}

}  // namespace tenon::host
