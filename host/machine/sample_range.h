// A range of the samples of arrays, as arrays. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/array_view.h"

namespace tenon::host {

using namespace core;

// The number of samples of a checked array.
[[nodiscard]] int64_t samples_of(const ArrayView& array);

// Samples `first` to `first` + `count` - 1 of checked arrays, of any storage. Borrows the arrays; holds offsets of its
// own where the range does not begin with the first row.
class SampleRange {
 public:
  SampleRange(const std::vector<ArrayView>& arrays, int64_t first, int64_t count);
  SampleRange(const SampleRange&) = delete;
  SampleRange& operator=(const SampleRange&) = delete;

  [[nodiscard]] const std::vector<ArrayView>& arrays() const { return arrays_; }

 private:
  ArrayView cut(ArrayView array, int64_t first, int64_t count);

  std::vector<std::vector<int64_t>> offsets_;
  std::vector<ArrayView> arrays_;
};

}  // namespace tenon::host
