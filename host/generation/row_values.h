// The values that the rows of a step read, in memory of their own. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/array_view.h"
#include "core/system.h"

namespace tenon::host {

using namespace core;

// Entries of an array, gathered by number.
class RowValues {
 public:
  // Borrows nothing.
  explicit RowValues(std::shared_ptr<Allocator> allocator) : allocator_(std::move(allocator)) {}

  // Takes the entries `numbers` of `from`: samples of a dense array, or sequences of one level of a ragged one. `from`
  // may be view() of before.
  void gather(const ArrayView& from, const std::vector<size_t>& numbers);
  // Takes `count` dense entries of this shape in which all elements are `value`.
  void fill(tn_dtype dtype, const std::vector<int64_t>& shape, size_t count, double value);
  // The entries, until the next change.
  [[nodiscard]] const ArrayView& view() const { return view_; }

 private:
  std::byte* room(uint64_t bytes);

  std::shared_ptr<Allocator> allocator_;
  Buffer now_, next_;  // a gather writes `next_`, since it may read `now_`
  std::vector<int64_t> offsets_;
  ArrayView view_;
};

}  // namespace tenon::host
