// Arrays in host memory that are lent. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

// An array in host memory that is lent: a feed going in, a value coming out. tn_array has the meaning of the members.
struct ArrayView {
  tn_dtype dtype = 0;
  std::vector<int64_t> shape;
  const void* data = nullptr;
  int32_t storage = TN_DENSE;
  uint32_t levels = 0;
  const int64_t* offsets[2] = {nullptr, nullptr};
  const int64_t* ids = nullptr;
  int64_t samples = 0;
};

struct NamedArray {
  std::string name;
  ArrayView array;
};

}  // namespace tenon
