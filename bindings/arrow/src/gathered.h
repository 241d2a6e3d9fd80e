// Samples of an array by their numbers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <span>
#include <tenon/tenon_base.hpp>
#include <vector>

namespace tenon_arrow {

// Copies `count` elements into others of the slot's type. Returns how many fit it before the first one that does not.
using CopyElements = std::function<size_t(const void* from, void* to, size_t count)>;

// Samples of one slot, which the host borrows until the next ones.
class Gathered {
 public:
  // element: bytes of an element of the slot. copy: how elements are copied; null: they are of the slot's type, and
  // fit.
  explicit Gathered(size_t element, CopyElements copy = nullptr) : element_(element), copy_(std::move(copy)) {}

  // Gathers samples in this order, in place of those before. Returns how many: fewer than all if one has an element
  // that does not fit, or a column twice.
  size_t gather(const tenon::Array& array, std::span<const int64_t> numbers);
  // Points `to` at the samples.
  void lend(const tenon::Array& array, tn_array& to);

 private:
  // Appends `count` samples from `first` on. Returns how many fit.
  size_t append(const tenon::Array& array, int64_t first, size_t count);
  size_t append_rows(const tenon::Array& array, int64_t first, int64_t last);
  [[nodiscard]] bool sort_entries(size_t first, size_t count);
  [[nodiscard]] char* grow(size_t bytes);

  size_t element_;
  CopyElements copy_;
  std::vector<char> data_;
  size_t used_ = 0;  // bytes of the data
  std::array<std::vector<int64_t>, 2> offsets_;
  std::vector<int64_t> ids_;
};

}  // namespace tenon_arrow
