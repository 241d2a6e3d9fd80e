// SPDX-License-Identifier: Apache-2.0
#include "host/machine/sparse_gradient.h"

#include <algorithm>
#include <cstring>

#include "core/alignment.h"
#include "core/checked.h"

namespace tenon::host {

SparseGradient::SparseGradient(ValueId value, size_t number, const ParameterEntry& entry, tn_dtype dtype)
    : value_(value),
      entry_(number),
      height_(entry.shape[0]),
      width_(height_ == 0 ? 0 : static_cast<int64_t>(entry.count) / height_),
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

void SparseGradient::resize(const std::shared_ptr<Device>& device, int64_t capacity) {
  const Layout to = layout(capacity);
  DeviceMemory memory(device, to.total);
  std::memset(memory.data(), 0, kCacheLine);
  auto* ids = reinterpret_cast<int64_t*>(memory.data() + to.ids);
  std::byte* values = memory.data() + to.values;
  if (memory_.data() != nullptr) {
    const auto kept = static_cast<uint64_t>(count());
    std::memcpy(memory.data(), memory_.data(), sizeof(int64_t));
    std::memcpy(ids, rows_.ids, kept * sizeof(int64_t));
    std::memcpy(values, values_, kept * row_bytes());
  }
  bytes_ = to.total;
  memory_ = std::move(memory);
  rows_ = {sizeof rows_, 0, capacity, &counter(), ids};
  values_ = values;
}

void SparseGradient::copy(const SparseGradient& from) {
  const auto rows = static_cast<size_t>(from.count());
  counter() = from.count();
  std::memcpy(const_cast<int64_t*>(rows_.ids), from.rows_.ids, rows * sizeof(int64_t));
  std::memcpy(values_, from.values_, rows * row_bytes());
}

}  // namespace tenon::host
