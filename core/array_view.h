// Borrowed arrays in host memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::core {

// A borrowed array in host memory: a feed or a result. The members have the meaning of those of tn_array. Elements have
// whole bytes.
struct ArrayView {
  tn_dtype dtype = 0;
  std::vector<int64_t> shape;
  const void* data = nullptr;
  int32_t storage = TN_DENSE;
  uint32_t levels = 0;
  const int64_t* offsets[2] = {nullptr, nullptr};
  const int64_t* ids = nullptr;
  int64_t samples = 0;
  std::vector<int64_t> strides = {};  // in elements, one for each dimension; empty: row-major
};

struct NamedArray {
  std::string name;
  ArrayView array;
};

// Whether the elements lie in row-major order without gaps. True for arrays of at most one element.
[[nodiscard]] bool is_row_major(const ArrayView& array);

// The elements of an array that is not row-major, in row-major order: the place of each in elements from `data` on.
class StridedPlaces {
 public:
  explicit StridedPlaces(const ArrayView& array);
  [[nodiscard]] int64_t place() const { return place_; }
  void next();

 private:
  const std::vector<int64_t>& shape_;
  std::vector<int64_t> strides_;  // 0 for a dimension of one element, whose stride may be any number
  std::vector<int64_t> index_;
  int64_t place_ = 0;
};

// Returns the bytes of the elements, without gaps between them.
uint64_t element_bytes(const ArrayView& array);

// Copies the elements of a dense array, or the rows of a ragged one, to `to` in row-major order.
void copy_elements(const ArrayView& from, std::byte* to);

// Returns the number of the first of these float32 or float64 values that is not finite; -1 if all are.
[[nodiscard]] int64_t find_not_finite(tn_dtype dtype, const void* values, int64_t count);

// Integers that are used as indices: 0 to limit - 1, and one that is not used.
struct IndexLimit {
  int64_t limit = -1;  // -1: none
  std::optional<int64_t> exempt;
};

// Whether `b` allows all that `a` allows.
[[nodiscard]] inline bool is_within(const IndexLimit& a, const IndexLimit& b) {
  return a.limit <= b.limit && (!a.exempt || a.exempt == b.exempt);
}

// Returns such as "0 to 9", or "0 to 9, or -100".
[[nodiscard]] std::string to_string(const IndexLimit& limit);

struct IndexBeyond {
  int64_t element = 0;  // its number in row-major order
  int64_t value = 0;
};

// Returns the first element of an array of integers, or of the rows of a ragged one, that is beyond the limit.
[[nodiscard]] std::optional<IndexBeyond> first_beyond(const ArrayView& array, const IndexLimit& limit);

}  // namespace tenon::core
