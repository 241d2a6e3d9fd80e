// A range of the samples of arrays, as arrays. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/not_copied.h"
#include "core/array_view.h"

namespace tenon::host {

using namespace core;

// The number of samples of a checked array.
[[nodiscard]] int64_t samples_of(const ArrayView& array);

// A range of the samples of checked arrays, of any storage. Borrows the arrays; holds offsets of its own where the
// range does not begin with the first row.
class SampleRange : base::NotCopied {
 public:
  explicit SampleRange(const std::vector<ArrayView>& arrays) : whole_(arrays), arrays_(arrays) {}
  SampleRange(const std::vector<ArrayView>& arrays, int64_t first, int64_t count) : SampleRange(arrays) {
    move(first, count);
  }

  // Makes it the samples `first` to `first` + `count` - 1. Without sequences this allocates nothing.
  void move(int64_t first, int64_t count);
  [[nodiscard]] const std::vector<ArrayView>& arrays() const { return arrays_; }

 private:
  void cut(ArrayView& array, int64_t first, int64_t count);

  const std::vector<ArrayView>& whole_;
  std::vector<std::vector<int64_t>> offsets_;
  std::vector<ArrayView> arrays_;
};

}  // namespace tenon::host
