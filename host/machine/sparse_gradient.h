// The gradient of one parameter by rows (row-sparse): the ids of rows, and a row of values for each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/array_view.h"
#include "core/graph/graph.h"
#include "core/parameter_set.h"
#include "host/plugins/device.h"

namespace tenon {

// Fixed in place: calls are bound to `rows`.
class SparseGradient {
 public:
  // Of entry number `number` of a set. It has no room before `plan` or `resize`.
  SparseGradient(ValueId value, size_t number, const ParameterEntry& entry, tn_dtype dtype);
  SparseGradient(const SparseGradient&) = delete;
  SparseGradient& operator=(const SparseGradient&) = delete;

  // Only counts the bytes that `capacity` rows need.
  void plan(int64_t capacity);
  // Makes room for `capacity` rows in device memory; the rows that it has stay.
  void resize(const std::shared_ptr<Device>& device, int64_t capacity);
  // Takes the rows of another gradient of the same parameter, for which it has room.
  void copy(const SparseGradient& from);

  [[nodiscard]] ValueId value() const { return value_; }
  [[nodiscard]] size_t entry() const { return entry_; }
  [[nodiscard]] int64_t height() const { return height_; }  // rows of the parameter
  [[nodiscard]] int64_t width() const { return width_; }    // elements of a row
  [[nodiscard]] tn_dtype dtype() const { return dtype_; }
  [[nodiscard]] uint64_t row_bytes() const { return static_cast<uint64_t>(width_) * tn_dtype_bytes(dtype_); }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] int64_t capacity() const { return rows_.capacity; }
  [[nodiscard]] const tn_rows& rows() const { return rows_; }
  [[nodiscard]] void* values() const { return values_; }
  [[nodiscard]] int64_t count() const { return *rows_.count; }  // once it has memory

 private:
  struct Layout {  // offsets into the memory, bytes
    uint64_t ids = 0, values = 0, total = 0;
  };
  [[nodiscard]] Layout layout(int64_t capacity) const;
  [[nodiscard]] int64_t& counter() const { return *reinterpret_cast<int64_t*>(memory_.data()); }

  ValueId value_;
  size_t entry_;
  int64_t height_, width_;
  tn_dtype dtype_;
  tn_rows rows_ = {};
  void* values_ = nullptr;
  uint64_t bytes_ = 0;
  DeviceMemory memory_;  // the count, from the next cache line on the ids, behind these the values
};

}  // namespace tenon
