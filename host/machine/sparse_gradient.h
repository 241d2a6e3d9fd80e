// The row-sparse gradient of one parameter: ids of rows, and a row of values for each id.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "core/array_view.h"
#include "core/graph/graph.h"
#include "core/parameter_set.h"
#include "host/plugins/device.h"
#include "host/plugins/host_access.h"

namespace tenon::host {

using namespace core;

// Borrowed: ids int64 [count], values [count, ...] in the shape of the parameter.
struct SparseGradientView {
  ArrayView ids, values;
};

// ids int64 [count], values [count, width]. Not movable: calls hold the address of rows().
class SparseGradient : base::NotCopied {
 public:
  // The gradient of entry number `number` of a set. Its capacity is 0 until plan() or resize().
  // Borrows `access`, by which the host reads and writes it.
  SparseGradient(ValueId value, size_t number, const ParameterEntry& entry, tn_dtype dtype, HostAccess& access);

  // Sets the capacity and the bytes that it needs, without allocating memory.
  void plan(int64_t capacity);
  // Allocates device memory for `capacity` rows, and copies the rows so far.
  void resize(int64_t capacity);
  // Returns a capacity for as many rows more, all of which may be new ones: the present one if it suffices.
  [[nodiscard]] int64_t capacity_for(int64_t added) const;
  // Drops all rows. After resize() only.
  void clear() { access_.zero(memory_.data(), sizeof(int64_t)); }
  // Replaces the rows by others of the host, whose ids are distinct. values: [ids, width]. The capacity must suffice.
  void write(const std::vector<int64_t>& ids, const std::byte* values);
  // Copies the rows of another gradient of the same parameter. The capacity must suffice.
  void copy(const SparseGradient& from);

  [[nodiscard]] ValueId value() const { return value_; }
  [[nodiscard]] size_t entry() const { return entry_; }
  [[nodiscard]] int64_t height() const { return height_; }  // rows of the parameter
  [[nodiscard]] int64_t width() const { return width_; }    // elements of a row
  [[nodiscard]] tn_dtype dtype() const { return dtype_; }
  [[nodiscard]] uint64_t row_bytes() const { return tn_dtype_storage(dtype_, static_cast<uint64_t>(width_)); }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] int64_t capacity() const { return rows_.capacity; }
  [[nodiscard]] const tn_row_sparse& rows() const { return rows_; }
  [[nodiscard]] void* values() const { return values_; }
  // After resize() only, like the functions below. Valid until the next call of a machine on the gradient.
  [[nodiscard]] SparseGradientView view() const;
  // Returns the gradient with zeros for all other rows, in `buffer`, which grows as needed.
  [[nodiscard]] ArrayView dense_copy(Buffer& buffer) const;
  // Waits for what the device writes.
  [[nodiscard]] int64_t count() const {
    int64_t count = 0;
    access_.read(&count, rows_.count, sizeof count);
    return count;
  }

 private:
  struct Layout {  // offsets into the memory, bytes
    uint64_t ids = 0, values = 0, total = 0;
  };
  [[nodiscard]] Layout layout(int64_t capacity) const;

  ValueId value_;
  size_t entry_;
  HostAccess& access_;
  std::vector<int64_t> shape_;  // of the parameter
  int64_t height_, width_;
  tn_dtype dtype_;
  tn_row_sparse rows_ = {};
  void* values_ = nullptr;
  uint64_t bytes_ = 0;
  DeviceMemory memory_;  // the count, the ids, the values; each begins at a cache line
};

}  // namespace tenon::host
